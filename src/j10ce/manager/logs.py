"""Logs: one line per event to standard error, `key=value` for people or JSON for machines."""

from __future__ import annotations

import sys
from typing import Final, Literal

import structlog

Format = Literal["console", "json"]
FORMATS: Final[tuple[Format, ...]] = ("console", "json")
LEVELS: Final = ("debug", "info", "warning", "error")


def configure(form: Format, level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *((structlog.processors.dict_tracebacks,) if form == "json" else (structlog.processors.format_exc_info,)),
            structlog.processors.JSONRenderer()
            if form == "json"
            else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
