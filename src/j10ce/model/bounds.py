"""How much any input may hold. Checked by the decoder, before a pattern, a cache, a log or an answer sees the input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from j10ce.errors import MOST_FINDINGS, MOST_SHOWN

MOST_WORD: Final = 1024  # characters of a name, a key, a label, a target
MOST_TEXT: Final = 16_384  # of a sentence for people
MOST_WHY: Final = 1024  # of the reason of a hold, which goes to every node
MOST_ANNOTATION: Final = 262_144  # of one annotation, as in Kubernetes
MOST_ITEMS: Final = 1024  # of a list or a mapping that a client writes
MOST_REPORT: Final = 65_536  # bytes of what a node reports about itself, and of any request of a node
MOST_OBJECT: Final = 1 << 20  # bytes of an object as it is stored
MOST_VALUES: Final = 1 << 14  # of an object that a client sends or a patch makes: 64 bytes each fill MOST_OBJECT
MOST_SELECTOR: Final = 1024  # characters of a selector in a query
MOST_DEPTH: Final = 64  # levels of nesting
MOST_AMOUNT: Final = 64  # characters of a quantity or a duration, blanks around it aside

T = TypeVar("T")
Word = Annotated[str, Meta(max_length=MOST_WORD)]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Number = Annotated[int, Meta(ge=-(2**53), le=2**53)]  # what every client can read
Several = Annotated[tuple[T, ...], Meta(max_length=MOST_ITEMS)]
Named = Annotated[dict[Word, T], Meta(max_length=MOST_ITEMS)]
Words = Several[Word]
Labels = Named[Word]
Annotations = Named[Annotated[str, Meta(max_length=MOST_ANNOTATION)]]

# Only what tells the levels is kept, with one spelling for both kinds of bracket.
_TO_BRACES: Final = bytes.maketrans(b"[]", b"{}")
_NO_BRACKET: Final = bytes(set(range(256)) - set(b'[]{}"'))
_BLANK: Final = b" \t\r\n"
_SOME: Final = 16_384  # an even number: what is left begins outside of a string
_STRING: Final = re.compile(rb'"[^"]*"')


def too_deep(data: bytes | str, most: int = MOST_DEPTH) -> bool:
    """Whether JSON text is nested deeper than that; of text that is no JSON nothing is promised.

    Every round takes the innermost brackets out, all at once, in time linear in the text; most texts need none.
    """
    text = data.encode(errors="replace") if isinstance(data, str) else data
    if text.count(b"{") + text.count(b"[") <= most:
        return False
    left = _STRING.sub(b"", _unescaped(text).translate(_TO_BRACES, _NO_BRACKET).replace(b'""', b""))
    for _ in range(most):
        before, left = len(left), left.replace(b"{}", b"")
        if not left or len(left) == before:
            break
    return bool(left)


def too_many(data: bytes | str, most: int = MOST_VALUES) -> bool:
    """Whether the objects and lists of valid JSON text hold more than that, all that one key names included.

    It counts in the text, as the values themselves take twenty times its memory.
    """
    text = _as_bytes(data)
    if sum(map(text.count, (b",", b"{", b"["))) <= most:
        return False
    bare = b"".join(_between_strings(_unescaped(text))).translate(_TO_BRACES, _BLANK)
    # Every comma begins another value of something, every bracket the first one, unless there is none.
    return bare.count(b",") + bare.count(b"{") - bare.count(b"{}") > most


def _between_strings(unescaped: bytes) -> Iterator[bytes]:
    left = unescaped
    while left:  # some strings at a time: all of them are objects, too
        pieces = left.split(b'"', _SOME)
        left = pieces.pop() if len(pieces) > _SOME else b""
        yield b"".join(pieces[::2])


def may_repeat(data: bytes | str) -> bool:
    """Whether valid JSON text could name a field twice: far cheaper to tell than to look at each object.

    What the decoder drops takes its colon along; an escape may hide one.
    """
    text = _as_bytes(data)
    return b"\\" in text or msgspec.json.encode(msgspec.json.decode(text)).count(b":") != text.count(b":")


def repeated_keys(data: bytes | str, most: int = MOST_FINDINGS) -> list[str]:
    """The paths of fields that an object of valid JSON text names twice: the first so many, as much of each as an
    answer repeats."""
    whole = _PAIRS.decode(_as_bytes(data).decode(errors="surrogatepass"))
    return [*islice(_repeated(whole, ()), most)] if isinstance(whole, list) else []


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, repetitions included."""


# A number may be as long as the text, and is nothing to us.
_PAIRS: Final = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=len, parse_float=len, strict=False)


def _repeated(holder: list[Any], above: tuple[str | int, ...]) -> Iterator[str]:
    """A path is spelled where a finding needs it, and nowhere else: keys may be long, and many stand below one."""
    members: Iterable[tuple[str | int, Any]] = holder if isinstance(holder, _Pairs) else enumerate(holder)
    seen: set[str | int] = set()
    for key, member in members:
        if key in seen:
            yield _spelled((*above, key))
        seen.add(key)
        if member and isinstance(member, list):
            yield from _repeated(member, (*above, key))


def _spelled(steps: tuple[str | int, ...]) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{step[: MOST_SHOWN + 1]}" for step in steps)
    path = "".join(parts).removeprefix(".")
    return path if len(path) <= MOST_SHOWN else f"{path[: MOST_SHOWN - 1]}…"


def _as_bytes(data: bytes | str) -> bytes:
    return data.encode(errors="surrogatepass") if isinstance(data, str) else data


def _unescaped(text: bytes) -> bytes:
    """Without escaped quotes: those left over begin and end the strings."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
