"""Counters and gauges, and the text of them that Prometheus reads.

The library that others use for it brings a web server along: 3 MiB of memory that an agent would hold for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, Literal

LONGEST_WHOLE: Final = 6  # digits before the point
ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
ESCAPED_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class MetricCell:
    """One number."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, by: float = 1.0) -> None:
        self.value += by

    def set(self, value: float) -> None:
        self.value = float(value)


class MetricFamily:
    """All numbers of one name, by the values of its labels; one that has no labels is there from the beginning."""

    def __init__(self, kind: Literal["counter", "gauge"], name: str, text: str, labels: Iterable[str] = ()) -> None:
        self.name = f"{name}_total" if kind == "counter" else name
        self._kind, self._text, self._labels = kind, text, tuple(labels)
        self._cells: dict[tuple[str, ...], MetricCell] = {}
        if not self._labels:
            self.labels()

    def labels(self, *values: str) -> MetricCell:
        if len(values) != len(self._labels):
            raise ValueError(f"{self.name} has the labels {', '.join(self._labels) or 'none'}")
        return self._cells.setdefault(values, MetricCell())

    def inc(self, by: float = 1.0) -> None:
        self.labels().inc(by)

    def set(self, value: float) -> None:
        self.labels().set(value)

    def clear(self) -> None:
        self._cells = {}

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self._text.translate(ESCAPED_HELP)}\n"
        yield f"# TYPE {self.name} {self._kind}\n"
        for values, cell in self._cells.items():
            pairs = sorted(zip(self._labels, values, strict=True))
            said = ",".join(f'{name}="{text.translate(ESCAPED)}"' for name, text in pairs)
            yield f"{self.name}{{{said}}} {_spelled(cell.value)}\n" if said else f"{self.name} {_spelled(cell.value)}\n"


def exposed(families: Iterable[MetricFamily]) -> bytes:
    return "".join(line for family in families for line in family.lines()).encode()


def _spelled(value: float) -> str:
    """As Go spells it, whose clients' numbers dashboards know: `3e+08`."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = "NaN" if math.isnan(value) else repr(value)
    whole, dot, rest = text.partition(".")
    if not dot or len(whole) <= LONGEST_WHOLE or value < 0:
        return text
    mantissa = f"{whole[0]}.{whole[1:]}{rest}".rstrip("0.")
    return f"{mantissa}e+{len(whole) - 1:02d}"
