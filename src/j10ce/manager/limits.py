"""How much one caller may ask for: token buckets in bounded memory, and a count of open watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from typing import Final

from j10ce.manager.failure import Refusal
from j10ce.manager.identity import Caller, Role

REQUESTS_PER_S: Final = 200.0
REQUESTS_BURST: Final = 400.0
STRANGERS_PER_S: Final = 5.0  # failed attempts of one address
STRANGERS_BURST: Final = 50.0
MOST_WATCHES: Final = 100
MOST_KEPT: Final = 20_000


class Buckets:
    """One bucket per key, filled with `rate` a second up to `burst`. A key that is not kept has a full one.

    At most `most` keys are kept: the one that rested longest goes first, and is the most likely to be full again.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], *, most: int = MOST_KEPT) -> None:
        self._rate, self._burst, self._clock, self._most = rate, burst, clock, most
        self._kept: dict[str, tuple[float, float]] = {}  # key -> (level, when); the longest rested first

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, key: str) -> float:
        """Take one; 0 when there was one, else the seconds until there is."""
        now = self._clock()
        level, at = self._kept.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        granted = level >= 1
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (level - 1 if granted else level, now)
        return 0.0 if granted else (1 - level) / self._rate


class Limits:
    """Administrators are exempt: whoever puts things right must not be kept waiting by what went wrong."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._callers = Buckets(REQUESTS_PER_S, REQUESTS_BURST, clock)
        self._strangers = Buckets(STRANGERS_PER_S, STRANGERS_BURST, clock)
        self._watches: dict[str, int] = {}

    def request(self, caller: Caller) -> None:
        """Raises Refusal 429 when the caller asks too often."""
        if caller.role is not Role.ADMIN and (wait_s := self._callers.take(caller.name)):
            raise _too_many(f"{caller.name} asks more than {REQUESTS_PER_S:g} times a second", wait_s)

    def stranger(self, source: str) -> None:
        """An attempt without a valid token; raises Refusal 429 when there were too many from there."""
        if wait_s := self._strangers.take(network(source)):
            raise _too_many(f"too many attempts without a valid token from {source}", wait_s)

    @property
    def watches(self) -> int:
        """Open ones, of all callers."""
        return sum(self._watches.values())

    @contextmanager
    def watch(self, caller: Caller) -> Iterator[None]:
        """For as long as a watch is open; raises Refusal 429 when the caller has too many."""
        self.open_watch(caller)
        try:
            yield
        finally:
            self.close_watch(caller)

    def open_watch(self, caller: Caller) -> None:
        has = self._watches.get(caller.name, 0)
        if caller.role is not Role.ADMIN and has >= MOST_WATCHES:
            raise _too_many(f"{caller.name} has {has} watches open; close some", 1.0)
        self._watches[caller.name] = has + 1

    def close_watch(self, caller: Caller) -> None:
        left = self._watches.pop(caller.name) - 1
        if left:
            self._watches[caller.name] = left


def network(source: str) -> str:
    """Who counts as one stranger: an IPv4 address, or the /64 that one IPv6 host is given."""
    try:
        address = ip_address(source)
    except ValueError:
        return source
    if not isinstance(address, IPv6Address):
        return source
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


def _too_many(message: str, wait_s: float) -> Refusal:
    seconds = str(max(1, round(wait_s + 0.5)))
    return Refusal(429, "TooManyRequests", f"{message}; try again in {seconds} s", {"retry-after": seconds})
