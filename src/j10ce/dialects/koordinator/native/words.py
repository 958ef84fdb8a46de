"""How generated objects are called, and how they are recognised."""

from __future__ import annotations

import re
from typing import Final

DIALECT_LABEL: Final = "j10ce.io/dialect"
KEY_LABEL: Final = "j10ce.io/dialect-key"
DIALECT: Final = "koordinator"
LONGEST: Final = 60  # characters of what somebody called an entry
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """As part of a name of Kubernetes; `unnamed` where nothing is left of it."""
    return _OTHER.sub("-", text.lower())[:LONGEST].strip("-") or "unnamed"


def labels(key: str) -> dict[str, str]:
    return {DIALECT_LABEL: DIALECT, KEY_LABEL: key}
