"""Logs: one line per event to standard error, `key=value` for people or JSON for machines."""

from __future__ import annotations

from typing import Any, Final, Literal

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from j10ce.daemon import logs
from j10ce.manager.access.tokens import redact

Format = Literal["console", "json"]
FORMATS: Final[tuple[Format, ...]] = ("console", "json")
# Without the variables of every frame: some hold what callers authenticate with.
TRACEBACKS: Final = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))


def configure(form: Format, level: str) -> None:
    if form == "json":
        logs.configure(level, (TRACEBACKS, structlog.processors.JSONRenderer(), _redacted))
    else:
        logs.configure(level, (structlog.processors.format_exc_info, logs.KEY_VALUE, _redacted))


def _redacted(_: object, __: str, line: Any) -> str:
    """A message may quote what somebody sent."""
    return redact(line)
