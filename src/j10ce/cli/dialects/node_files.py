"""Terway's files of a node among the files of a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from j10ce.cli.manifests import texts
from j10ce.dialects.terway.files import GLOBAL, PODS
from j10ce.errors import Finding, Invalid


def is_node_file(name: str) -> bool:
    return Path(name).name in {GLOBAL, PODS}


def node_files(names: Iterable[str]) -> dict[str, str]:
    """By the name that Terway has for them; Invalid where two have the same."""
    by_name: dict[str, str] = {}
    for path, text in texts(names):
        if Path(path).name in by_name:
            raise Invalid(
                [Finding(path, None, "a second file of this name", "convert one node's files at a time")], "files"
            )
        by_name[Path(path).name] = text
    return by_name
