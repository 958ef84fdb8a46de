"""Fields that this release does not know, in what others have written: each is logged once."""

from __future__ import annotations

from typing import Final

import structlog

from j10ce.errors import Finding

log = structlog.get_logger()
MOST_LOGGED: Final = 1000


class Strays:
    """Which unknown fields were met; the log names each of them once."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def tell(self, kind: str, strays: list[Finding]) -> None:
        for stray in strays:
            if (kind, stray.path) not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add((kind, stray.path))
                log.warning("field.ignore", kind=kind, field=stray.path)
