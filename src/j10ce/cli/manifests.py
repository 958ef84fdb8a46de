"""Objects from YAML and JSON files: every file is read and every object checked before anything is used."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from j10ce.errors import Finding, Invalid
from j10ce.model.schema import decode, plain
from j10ce.policy.validate import validate

ENDINGS = (".yaml", ".yml", ".json")


def load(names: Iterable[str]) -> list[dict[str, Any]]:
    """The checked plain objects of files and directories, in order; Invalid names file, object and field.

    Values are spelled as the API spells them, defaults left out.
    """
    return [{k: v for k, v in plain(obj).items() if k in raw} for raw, obj in load_checked(names)]


def load_checked(names: Iterable[str], foreign: frozenset[str] = frozenset()) -> list[tuple[dict[str, Any], Any]]:
    """(plain, decoded) pairs. Kinds in `foreign` (Pod, Node) are passed on undecoded."""
    findings: list[Finding] = []
    out: list[tuple[dict[str, Any], Any]] = []
    for name, text in _texts(names):
        for index, raw in enumerate(_documents(name, text)):
            if isinstance(raw, dict) and raw.get("kind") in foreign:
                out.append((raw, None))
                continue
            try:
                obj = decode(raw)
                found = validate(obj)
            except Invalid as e:
                found = list(e.findings)
                obj = None
            where = f"{name}#{index + 1}"
            findings += [f._replace(path=f"{where} {f.path}") for f in found]
            out.append((raw, obj))
    if findings:
        raise Invalid(findings, "manifests")
    if not out:
        raise Invalid([Finding(" ".join(names), None, "no objects found", "give YAML or JSON files")], "manifests")
    return out


def _documents(name: str, text: str) -> list[Any]:
    try:
        documents = [d for d in yaml.safe_load_all(text) if d is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as e:
        where = f":{e.problem_mark.line + 1}" if isinstance(e, yaml.MarkedYAMLError) and e.problem_mark else ""
        problem = str(getattr(e, "problem", None) or e)
        raise Invalid([Finding(f"{name}{where}", None, f"not YAML: {problem}", "check indentation and quotes")]) from e
    out: list[Any] = []
    for d in documents:
        out.extend(d.get("items") or [] if isinstance(d, dict) and str(d.get("kind", "")).endswith("List") else [d])
    return out


def _texts(names: Iterable[str]) -> list[tuple[str, str]]:
    out = []
    for name in names:
        if name == "-":
            out.append(("stdin", sys.stdin.read()))
            continue
        path = Path(name)
        paths = sorted(p for p in path.iterdir() if p.suffix in ENDINGS) if path.is_dir() else [path]
        for p in paths:
            try:
                out.append((str(p), p.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError) as e:
                reason = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
                raise Invalid([Finding(str(p), None, str(reason), "give a readable YAML or JSON file")], "file") from e
    return out
