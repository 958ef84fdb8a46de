"""How durations are spelled: as in Go, cut to whole seconds beyond one second, else to milliseconds."""

from __future__ import annotations

import math
from typing import Final

NS: Final = 1_000_000_000
MS: Final = 1_000_000
US_PER_S: Final = 1_000_000


def spelled(seconds: float) -> str:
    if not math.isfinite(seconds):
        return number(seconds, 0)
    return spelled_ns(round(seconds * US_PER_S) * NS // US_PER_S)  # clocks of this century have no finer digits


def spelled_ns(nanoseconds: int) -> str:
    """Negative ones keep their milliseconds, however long they are. Cut is towards zero."""
    unit = NS if nanoseconds > NS else MS
    cut = abs(nanoseconds) // unit * unit
    sign = "-" if nanoseconds < 0 and cut else ""
    return sign + _go(cut)


def _go(nanoseconds: int) -> str:
    if nanoseconds < NS:
        return f"{nanoseconds // MS}ms" if nanoseconds else "0s"
    minutes, rest = divmod(nanoseconds, 60 * NS)
    hours, minutes = divmod(minutes, 60)
    seconds, fraction = divmod(rest, NS)
    text = f"{seconds}.{fraction:09}".rstrip("0").rstrip(".") if fraction else str(seconds)
    if hours:
        return f"{hours}h{minutes}m{text}s"
    return f"{minutes}m{text}s" if minutes else f"{text}s"


def number(value: float, decimals: int) -> str:
    """As Go prints it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.{decimals}f}"
