"""Amounts as people write them: `500m`, `1Gi`, `100Mbit`, `25%`, exact and round-tripping.

A Quantity is dimensionless until someone asks for it in a unit: the same `2` is two CPUs
in a cpu field and two bytes in a memory field, just as in Kubernetes.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, NewType

from j10ce.errors import Finding, Invalid
from j10ce.model.bounds import MOST_AMOUNT

Bytes = NewType("Bytes", int)
Millicores = NewType("Millicores", int)
BitsPerSecond = NewType("BitsPerSecond", int)

DECIMAL: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
}  # fmt: skip
BINARY: Final = {f"{p}i": Fraction(1024**n) for n, p in enumerate("KMGTPE", start=1)}
# Line rates as tc spells them, for the network fields; `K` is accepted for `k`.
BITRATE: Final = {"bit": 1, "kbit": 10**3, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
SUFFIXES: Final = {**DECIMAL, **BINARY, **{s: Fraction(n) for s, n in BITRATE.items()}}

# Nineteen digits before the point and twelve after it cover every machine; longer input is a mistake or an attack.
NUMBER: Final = re.compile(r"([+-]?)(\d{1,19}(?:\.\d{0,12})?|\.\d{1,12})(?:[eE]([+-]?\d{1,2})|([A-Za-z%]*))", re.ASCII)
LARGEST: Final = Fraction(2**63 - 1)
MOST_DIGITS: Final = 19
FINEST: Final = 10**9  # nothing is finer than a billionth, as in Kubernetes
# The largest first, in billionths.
SPELLINGS: Final = tuple((s, int(n * FINEST)) for s, n in (*reversed(BINARY.items()), *reversed(DECIMAL.items())))


class Quantity:
    """A non-negative amount, exact to a billionth and rounded up there, or a percentage of the node's. Immutable."""

    __slots__ = ("_spelled", "amount", "percent", "rate")
    amount: Fraction
    percent: bool
    rate: bool  # written as a line rate, in bits: no other resource is; says nothing of the amount
    _spelled: str  # once it was asked for: it is written far more often than made

    def __init__(self, amount: Fraction | int, percent: bool = False, rate: bool = False) -> None:
        object.__setattr__(self, "amount", Fraction(math.ceil(amount * FINEST), FINEST))
        object.__setattr__(self, "percent", percent)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "_spelled", "")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Quantity is immutable; cannot set {name}")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Quantity) and (self.amount, self.percent) == (other.amount, other.percent)

    def __hash__(self) -> int:
        return hash((self.amount, self.percent))

    def __repr__(self) -> str:
        return f"Quantity({self})"

    @classmethod
    def parse(cls, text: str | int | float) -> Quantity:
        """Read one quantity; raises Invalid with what is allowed."""
        if not isinstance(text, str):
            return _read(text)
        text = text.strip()
        if len(text) > MOST_AMOUNT:
            raise _bad(text, "too long", f"write at most {MOST_AMOUNT} characters, such as 500m, 1Gi, 100Mbit or 25%")
        return _read_text(text)

    def of(self, whole: float | Fraction) -> Fraction:
        """The amount itself, or that percentage of `whole`."""
        return self.amount * Fraction(whole) / 100 if self.percent else self.amount

    def millicores(self, node: Millicores = Millicores(0)) -> Millicores:
        """In thousandths of a CPU, rounded up: a promise is never rounded away."""
        return Millicores(math.ceil(self.of(Fraction(node, 1000)) * 1000))

    def bytes(self, node: Bytes = Bytes(0)) -> Bytes:
        return Bytes(math.ceil(self.of(node)))

    def bits_per_s(self, node: BitsPerSecond = BitsPerSecond(0)) -> BitsPerSecond:
        return BitsPerSecond(math.ceil(self.of(node)))

    def __str__(self) -> str:
        if not self._spelled:
            object.__setattr__(self, "_spelled", format_quantity(self))
        return self._spelled


def _read(text: str | int | float) -> Quantity:
    if isinstance(text, int) and text > LARGEST:
        raise _bad(None, "too large", "the largest amount is 2^63-1")
    matched = NUMBER.fullmatch(str(text)) if not isinstance(text, bool) else None
    if matched is None:
        raise _bad(text, "not a quantity", "write a number, with a suffix or without: 500m, 1Gi, 100Mbit, 25%")
    sign, digits, exponent, suffix = matched.groups()
    amount = Fraction(digits) * (Fraction(10) ** int(exponent) if exponent else 1)
    if sign == "-" and amount:
        raise _bad(text, "negative", "write zero or more")
    if suffix == "%":
        return Quantity(amount, percent=True)
    if suffix and suffix not in SUFFIXES:
        raise _bad(text, f"unknown suffix {suffix!r}", "use one of " + " ".join(s for s in SUFFIXES if s) + " or %")
    amount *= SUFFIXES[suffix or ""]
    if amount > LARGEST:
        raise _bad(text, "too large", "the largest amount is 2^63-1")
    return Quantity(amount, rate=suffix in BITRATE)


@lru_cache(4096)
def _read_text(text: str) -> Quantity:
    """The same few amounts are read again and again; numbers stay out, since True equals 1.

    Only what is short and stripped may come here: what is kept stays.
    """
    return _read(text)


@lru_cache(4096)
def format_quantity(q: Quantity) -> str:
    """The shortest exact spelling; `Quantity.parse` reads it back to the same value."""
    if q.percent:
        return f"{_decimal(q.amount)}%"
    if not q.amount:
        return "0"
    billionths = q.amount.numerator * (FINEST // q.amount.denominator)
    for suffix, size in SPELLINGS:
        count, rest = divmod(billionths, size)
        if not rest and count < 10**MOST_DIGITS:
            return f"{count}{suffix}"
    return _decimal(q.amount)


def _decimal(amount: Fraction) -> str:
    whole, rest = divmod(amount, 1)
    return f"{whole}.{int(rest * FINEST):09d}".rstrip("0").rstrip(".")


def _bad(text: object, problem: str, hint: str) -> Invalid:
    return Invalid([Finding("", text, problem, hint)], "quantity")


DURATION: Final = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?", re.ASCII)


class Duration:
    """A span of time as people write it: `30s`, `10m`, `1h30m`, `7d`; exact to a microsecond. Immutable."""

    __slots__ = ("seconds",)
    seconds: float

    def __init__(self, seconds: float) -> None:
        object.__setattr__(self, "seconds", round(seconds * 1_000_000) / 1_000_000)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Duration is immutable; cannot set {name}")

    def __deepcopy__(self, _: object) -> Duration:
        return self

    @classmethod
    def parse(cls, text: object) -> Duration:
        spelled = text.strip() if isinstance(text, str) else ""
        matched = DURATION.fullmatch(spelled) if 0 < len(spelled) <= MOST_AMOUNT else None
        if matched is None:
            raise Invalid([Finding("", text, "not a duration", "write it as 30s, 10m, 1h30m or 7d")], "duration")
        days, hours, minutes, seconds = (float(g or 0) for g in matched.groups())
        return cls(days * 86400 + hours * 3600 + minutes * 60 + seconds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.seconds == other.seconds

    def __hash__(self) -> int:
        return hash(self.seconds)

    def __repr__(self) -> str:
        return f"Duration({self})"

    def __str__(self) -> str:
        whole, rest = divmod(round(self.seconds * 1_000_000), 1_000_000)
        out = ""
        for suffix, size in (("d", 86400), ("h", 3600), ("m", 60)):
            count, whole = divmod(whole, size)
            out += f"{count}{suffix}" if count else ""
        if rest:
            return out + f"{whole}.{rest:06d}".rstrip("0") + "s"
        return out + f"{whole}s" if whole or not out else out
