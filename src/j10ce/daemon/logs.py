"""Logs: one line per event to standard error, `key=value` unless told otherwise. journald and `up` add the rest."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping, Sequence
from typing import Any, Final

import structlog
from structlog.typing import Processor

from j10ce.model.text.cells import shown
from j10ce.model.text.secrets import redact

EventDict = MutableMapping[str, Any]
LEVELS: Final = ("debug", "info", "warning", "error")
KEY_VALUE: Final = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False)


def configure(level: str, spelled: Sequence[Processor] | None = None) -> None:
    """`spelled`: how an event with its level and time becomes a line."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(spelled or (structlog.processors.format_exc_info, _spell_out, KEY_VALUE)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
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


JSON: Final = (structlog.processors.format_exc_info, _spell_out, structlog.processors.JSONRenderer())
