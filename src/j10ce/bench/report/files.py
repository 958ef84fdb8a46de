"""prove.json and prove.html: whole, or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from j10ce.bench.report.page import paged
from j10ce.bench.verdict import Proof
from j10ce.errors import QosError

JSON: Final = "prove.json"
HTML: Final = "prove.html"
READABLE: Final = 0o644


def write_files(folder: Path, verdicts: Sequence[Proof]) -> list[Path]:
    """Where they are. Raises QosError where there is no room, or no right to write."""
    texts = {JSON: msgspec.json.format(msgspec.json.encode(verdicts)).decode() + "\n", HTML: paged(verdicts)}
    return [_write(folder / name, text) for name, text in texts.items()]


def refuse_unwritable(folder: Path) -> None:
    """Before minutes are spent on figures that could not be kept."""
    try:
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b" " * 65536)
            trial.flush()
    except OSError as e:
        raise QosError(f"cannot write into {folder}: {e.strerror}; --output names another folder") from e


def _write(path: Path, text: str) -> Path:
    fd, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), READABLE)
        os.replace(made, path)
    except OSError as e:
        with suppress(OSError):
            os.unlink(made)
        raise QosError(f"cannot write {path}: {e.strerror}; --output names another folder") from e
    return path
