"""Files that an administrator keeps beside the manager, as plain data: JSON or YAML."""

from __future__ import annotations

import importlib
from typing import Final

import msgspec

from j10ce.errors import Finding, Invalid

MOST_BYTES: Final = 4 << 20


def plain_of(text: bytes, what: str) -> object:
    """Raises Invalid; `what` names the file. The error repeats nothing of an unreadable file: it may hold secrets."""
    if len(text) > MOST_BYTES:
        raise Invalid([Finding("", None, f"larger than {MOST_BYTES} bytes")], what)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as e:
        where = getattr(e, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        raise Invalid([Finding("", None, f"neither JSON nor YAML{line}")], what) from None
