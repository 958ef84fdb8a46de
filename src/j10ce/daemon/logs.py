"""Logs: one line per event, `key=value`, to standard error. journald and `up` add the rest."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from j10ce.model.text.cells import shown
from j10ce.model.text.secrets import redact

EventDict = MutableMapping[str, Any]
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _spell_out,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _spell_out(_: object, __: str, event: EventDict) -> EventDict:
    """Logs are read in terminals and sent to others, and hold what callers wrote: no credentials, nothing that acts."""
    return {name: _harmless(value) for name, value in event.items()}


def _harmless(value: object) -> object:
    """A traceback keeps its lines."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return shown(redact(str(value)), keep="\n")
