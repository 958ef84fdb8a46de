"""YAML of JSON's values: mappings with text as keys, lists, texts, numbers, truth values and null.

Built from the parser's events, so that every bound holds while it is read: size, depth, no alias (a few lines of them
stand for more than memory holds), no tag, no key twice, and no number whose reading takes longer than its length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from j10ce.errors import Finding, Malformed
from j10ce.model.bounds import MOST_AMOUNT, MOST_DEPTH, MOST_REPORT
from j10ce.model.schema import REPEATED

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = MOST_REPORT
WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
BROKEN: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


def read(raw: bytes) -> Any:
    """Raises Malformed; ImportError where PyYAML is not installed. Slow for what it is: not for the event loop."""
    import yaml

    if len(raw) > MOST_BYTES:
        raise _bad(f"YAML of {len(raw)} bytes", f"send at most {MOST_BYTES}, or JSON")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(yaml.parse(raw, loader)).document()
    except (yaml.YAMLError, ValueError) as e:
        raise _bad(f"neither JSON nor YAML: {e}") from None


class _Reader:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events

    def document(self) -> Any:
        """Of exactly one document."""
        self._next("StreamStartEvent")
        if type(first := next(self._events)).__name__ == "StreamEndEvent":
            return None
        if type(first).__name__ != "DocumentStartEvent":
            raise _bad("no document")
        value = self._value(next(self._events), MOST_DEPTH)
        self._next("DocumentEndEvent")
        self._next("StreamEndEvent")
        return value

    def _next(self, kind: str) -> None:
        if type(next(self._events)).__name__ != kind:
            raise _bad("more than one document", "send one object")

    def _value(self, event: Any, room: int) -> Any:
        if getattr(event, "anchor", None) is not None:
            raise _bad(f"line {event.start_mark.line + 1}: aliases are not read here", "write it out")
        if event.tag is not None:
            raise _bad(f"line {event.start_mark.line + 1}: tags are not read here", "leave it out")
        match type(event).__name__:
            case "ScalarEvent":
                return _scalar(event.value) if event.implicit[0] else event.value
            case _ if not room:
                raise _bad("nested too deeply", f"nest at most {MOST_DEPTH} levels")
            case "SequenceStartEvent":
                return self._list(room - 1)
            case _:
                return self._mapping(room - 1)

    def _list(self, room: int) -> list[Any]:
        items: list[Any] = []
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            items.append(self._value(event, room))
        return items

    def _mapping(self, room: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            if type(event).__name__ != "ScalarEvent":
                raise _bad(f"line {event.start_mark.line + 1}: a key must be text")
            if event.value in mapping:
                raise Malformed([Finding(event.value, None, REPEATED, "write it once")])
            mapping[event.value] = self._value(next(self._events), room)
        return mapping


def _scalar(text: str) -> str | int | float | bool | None:
    if text in WORDS:
        return WORDS[text]
    if len(text) <= MOST_AMOUNT and WHOLE.fullmatch(text):
        return int(text)
    if len(text) <= MOST_AMOUNT and BROKEN.fullmatch(text):
        return float(text)
    return text


def _bad(problem: str, hint: str = "") -> Malformed:
    return Malformed([Finding("", None, problem, hint)])
