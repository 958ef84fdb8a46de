"""Logs: one line per event to standard error, `key=value` for people or JSON for machines."""

from __future__ import annotations

import sys
from typing import Any, Final, Literal

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from j10ce.manager.access.tokens import redact

Format = Literal["console", "json"]
FORMATS: Final[tuple[Format, ...]] = ("console", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
# Without the variables of every frame: some hold what callers authenticate with.
TRACEBACKS: Final = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))


def configure(form: Format, level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *((TRACEBACKS,) if form == "json" else (structlog.processors.format_exc_info,)),
            structlog.processors.JSONRenderer()
            if form == "json"
            else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
            _redacted,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _redacted(_: object, __: str, line: Any) -> str:
    """A message may quote what somebody sent."""
    return redact(line)
