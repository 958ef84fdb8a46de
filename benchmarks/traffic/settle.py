"""How soon everybody has his floor once demand changes, and how soon what he leaves is others'.

Here and by Terway's rule, on the same traffic: two busy workloads fill a link; a third with a floor begins, and ends
again. By the kernel's counts of what left, looked at every 20 ms; a floor holds from the first moment on in whose next
half second 98 % of it is sent, and not more than 101 % of the link by all. Terway's link is wider than what it is told:
nothing but its rule keeps all within that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from j10ce.host.net import queues
from j10ce.host.net.queues import counted
from j10ce.kernel.net import htb
from j10ce.model.knob import TargetId
from j10ce.model.plan import ValueChange
from tests.enforce.net.shaping import MBIT, Shaped, rate, value

LINK: Final = 96 * MBIT  # 12 of Terway's whole megabytes a second
MEGABYTE: Final = 8 * MBIT
FLOORS: Final = (64 * MBIT, 16 * MBIT, 16 * MBIT)  # of the protected one, and of both others
LOOK_S, SPAN_S = 0.02, 0.5
BEFORE_S, DURING_S, AFTER_S = 2.0, 12.0, 3.0
ENOUGH, FULL, MOST = 0.98, 0.97, 1.01
WIDER: Final = 3
SOON_S: Final = 0.3
TIMES: Final = 3.0
START: Final = (
    "import socket\ns = socket.create_connection(('192.0.2.2', 7001))\nd = bytes(65536)\nwhile True: s.send(d)\n"
)

Series = list[tuple[float, dict[int, int]]]  # when, and how many bytes each class had sent; 0: since the beginning
Begin = Callable[[TargetId, str], object]
End = Callable[[TargetId], None]


class TerwayCaps(NamedTuple):
    """Megabytes a second, whole ones: of online pods, and of both classes of offline ones."""

    online: int
    first: int
    second: int


def adjusted(caps: TerwayCaps, load: int, whole: int, least: TerwayCaps, most: TerwayCaps) -> TerwayCaps:
    """Terway's rule, once a second: the last class is cut first, and what is spare is given from the first on."""
    values, left = list(caps), abs(load - whole)
    order = (2, 1, 0) if load > whole else (0, 1, 2)
    for n in order:
        step = min(left, values[n] - least[n] if load > whole else most[n] - values[n])
        values[n] += -step if load > whole else step
        left -= step
    return TerwayCaps(*values)


def settle(shaped: Shaped, begin: Begin, end: End) -> bool:
    who = [shaped.admit(name) for name in ("online", "first", "second")]
    ours = _times(*_run(shaped, who, _floors(who), begin, end, None))
    theirs = _times(*_run(shaped, who, _caps(who), begin, end, Terway(shaped, who)))
    print(
        f"a change of demand at {LINK / MBIT:g} Mbit/s: the floor holds after {ours[0] * 1e3:.0f} ms, what it leaves is"
        f" others' after {ours[1] * 1e3:.0f} ms; by Terway's rule {theirs[0] * 1e3:.0f} and {theirs[1] * 1e3:.0f} ms"
    )
    return max(ours) <= SOON_S and theirs[0] >= TIMES * max(ours[0], LOOK_S)


def _floors(who: Sequence[TargetId]) -> list[ValueChange]:
    levels = zip(who, FLOORS, (1.0, 4.0, 7.0), strict=True)
    return [v for w, floor, level in levels for v in (value(w, "floor", floor), value(w, "priority", level))]


def _caps(who: Sequence[TargetId]) -> list[ValueChange]:
    """Nobody before others; the link is full with both classes of offline pods at their most."""
    return [value(w, "ceil", most) for w, most in zip(who, (LINK, LINK / 2, LINK / 2), strict=True)]


class Terway:
    """Its rule at work: caps from what was sent and wanted within the last second."""

    def __init__(self, shaped: Shaped, who: Sequence[TargetId]) -> None:
        self._shaped, self._who = shaped, who
        self._whole = int(LINK / MEGABYTE)
        self._least = TerwayCaps(*(int(f / MEGABYTE) for f in FLOORS))
        self._most = TerwayCaps(self._whole, self._whole // 2, self._whole // 2)
        self._caps, self._at, self._before = self._most, 0.0, 0

    def look(self, now: float, wanted: int) -> None:
        """`wanted`: bytes that were asked to be sent so far."""
        if now < self._at + 1.0:
            return
        load = round((wanted - self._before) / (now - self._at) / 1e6) if self._at else self._whole
        self._at, self._before = now, wanted
        caps = adjusted(self._caps, load, self._whole, self._least, self._most)
        changed = [value(w, "ceil", new * MEGABYTE) for w, new in zip(self._who, caps, strict=True)]
        self._caps = caps
        self._shaped.done(*changed)


def _run(
    shaped: Shaped, who: Sequence[TargetId], setup: Sequence[ValueChange], begin: Begin, end: End, rule: Terway | None
) -> tuple[Series, int, float, float]:
    """(what was seen, the class of the one with the floor, when it began, when it ended)."""
    shaped.done(rate(LINK * WIDER if rule else LINK), *setup)
    tree = next(iter(shaped.trees.every().values()))
    online = tree.branches[who[0]].minor
    for busy in who[1:]:
        begin(busy, START)
    _seen(shaped, tree.link, BEFORE_S, rule)
    begin(who[0], START)
    during = _seen(shaped, tree.link, DURING_S, rule)
    end(who[0])
    over = time.monotonic()
    after = _seen(shaped, tree.link, AFTER_S, rule)
    for busy in who[1:]:
        end(busy)
    begun = next((t for t, sent in during if sent[online] > during[0][1][online]), during[-1][0])
    shaped.kernel.revert()
    return during + after, online, begun, over


def _seen(shaped: Shaped, link: int, seconds: float, rule: Terway | None) -> Series:
    out: Series = []
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        every = {q.handle & 0xFFFF: counted(q) for q in queues.classes(shaped.trees.netlink, link)}
        out.append((now, {minor: c.sent for minor, c in every.items()}))
        if rule:
            rule.look(now, sum(c.sent + c.backlog + c.drops * 1514 for m, c in every.items() if m >= htb.FIRST))
        time.sleep(LOOK_S)
    return out


def _times(seen: Series, online: int, begun: float, over: float) -> tuple[float, float]:
    """Until its floor holds, and until all of the link is in use again."""

    def floor(sent: dict[int, float]) -> bool:
        return sent[online] >= ENOUGH * FLOORS[0] and sent[htb.WHOLE] <= MOST * LINK

    held = _since([one for one in seen if one[0] <= over], begun, floor)
    return held, _since(seen, over, lambda sent: sent[htb.WHOLE] >= FULL * LINK)


def _since(seen: Series, begun: float, good: Callable[[dict[int, float]], bool]) -> float:
    """Seconds until the next half second is good, by bits a second of each class; else all that there were."""
    for n, (at, before) in enumerate(seen):
        later = next(((t, sent) for t, sent in seen[n:] if t >= at + SPAN_S), None)
        if at >= begun and later:
            took = later[0] - at
            if good({minor: (later[1][minor] - had) * 8 / took for minor, had in before.items()}):
                return at - begun
    return seen[-1][0] - begun
