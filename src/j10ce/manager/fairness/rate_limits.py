"""Fair shares: how much one caller may use, and what is left for everybody else whatever that caller does.

Every caller belongs to one class, by its role and by what it asks for. Administrators, health and the manager's own
writes are in none: whoever puts things right must not be kept waiting by what went wrong. The others have budgets of
requests, of bytes that they write and store, of time on the event loop, of watches and of open answers. Budgets are
token buckets in bounded memory. Time is reserved at what the caller's requests usually take, and settled when it is
known: who has none left waits for its turn, so that its requests come one by one instead of all at once. When the body
of a request is there its caller is asked again, by what it has really used until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from j10ce.http.status import Refusal
from j10ce.manager.fairness.desks import Desks
from j10ce.manager.fairness.parts import Parts
from j10ce.manager.identity import NOBODY, Caller, Role

KIB, MIB = 1024, 1024 * 1024
STRANGERS_PER_S: Final = 5.0  # failed attempts of one address
STRANGERS_BURST: Final = 50.0
MOST_KEPT: Final = 20_000
PASSERS_PER_S: Final = 50.0  # questions of one address that anyone may ask
PASSERS_BURST: Final = 100.0
TYPICAL_S: Final = 0.001  # what a request of a caller takes that we know nothing of
LONGEST_TURN_S: Final = 1.0  # that a request waits for its turn
PENALTY_S: Final = 0.1  # that whoever is beyond its share waits for its refusal
MOST_WAITING: Final = 1000
DEBT_S: Final = 60.0  # after which whoever used too much at once is forgiven
LOOP_PER_S: Final = 0.9  # of a second: above it the event loop is busy, and classes keep to their shares


class Share(NamedTuple):
    """What one caller of a class may use. What comes per second saves up to a burst."""

    name: str
    requests_per_s: float
    requests_burst: float
    bytes_per_s: float  # that it writes
    bytes_burst: float
    stored_per_s: float  # by which all that it has stored may grow
    stored_burst: float
    loop_per_s: float  # seconds of the event loop
    loop_burst: float
    class_per_s: float  # of the event loop, for all callers of the class together, while it is busy
    watches: int
    answers: int  # that are being made or sent
    answer_bytes: int  # of those, in all


REPORTS: Final = Share(
    "reports of nodes", 20, 100, 16 * KIB, MIB, 256, 4 * MIB, 0.05, 0.1, 0.4, watches=0, answers=8, answer_bytes=MIB
)
DOCUMENTS: Final = Share(
    "documents of nodes", 20, 100, 0, 0, 0, 0, 0.05, 0.1, 0.4, watches=8, answers=8, answer_bytes=8 * MIB
)
PEOPLE: Final = Share(
    "people", 200, 400, 256 * KIB, 16 * MIB, 4 * KIB, 64 * MIB, 0.25, 0.1, 0.4,
    watches=100, answers=64, answer_bytes=16 * MIB,
)  # fmt: skip
SHARES: Final = (REPORTS, DOCUMENTS, PEOPLE)


def share_of(caller: Caller, *, writes: bool) -> Share | None:
    """None: it always works."""
    if caller.role is Role.ADMIN or caller is NOBODY:  # who is nobody is limited by its address
        return None
    if caller.role is Role.NODE:
        return REPORTS if writes else DOCUMENTS
    return PEOPLE


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
        level, now = self._level(key)
        granted = level >= 1
        self._keep(key, level - 1 if granted else level, now)
        return 0.0 if granted else (1 - level) / self._rate

    def charge(self, key: str, amount: float) -> None:
        """Take what was used, also where nothing is left; a negative amount is given back."""
        level, now = self._level(key)
        least = -self._burst - DEBT_S * self._rate
        self._keep(key, min(self._burst, max(least, level - amount)), now)

    def reserve(self, key: str, amount: float) -> float:
        """Take it, also where nothing is left; the seconds until it would have been there."""
        level, now = self._level(key)
        self._keep(key, level - amount, now)
        return max(0.0, (amount - level) / self._rate)

    def lacks(self, key: str, amount: float = 0.0) -> float:
        """The seconds until more than nothing is left, or so much; 0 when there is."""
        if key not in self._kept:
            return 0.0
        level, _ = self._level(key)
        return 0.0 if level >= amount and level > 0 else max(0.001, (amount - level) / self._rate)

    def _level(self, key: str) -> tuple[float, float]:
        now = self._clock()
        level, at = self._kept.get(key, (self._burst, now))
        return min(self._burst, level + (now - at) * self._rate), now

    def _keep(self, key: str, level: float, now: float) -> None:
        self._kept.pop(key, None)
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (level, now)


class Counts:
    """How much each caller has open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self._open.get(key, 0)

    def add(self, key: str, amount: int) -> None:
        left = self._open.pop(key, 0) + amount
        if left:
            self._open[key] = left

    @property
    def total(self) -> int:
        return sum(self._open.values())


class Account:
    """The budgets of one class."""

    def __init__(self, share: Share, clock: Callable[[], float]) -> None:
        self.share = share
        self.requests = Buckets(share.requests_per_s, share.requests_burst, clock)
        self.bytes = Buckets(share.bytes_per_s, share.bytes_burst, clock)
        self.stored = Buckets(share.stored_per_s, share.stored_burst, clock)
        self.loop = Buckets(share.loop_per_s, share.loop_burst, clock)  # less what is reserved
        self.used = Buckets(share.loop_per_s, share.loop_burst, clock)
        self.desks = Desks()
        self.together = Buckets(share.class_per_s, share.class_per_s, clock)
        self.parts = Parts(clock, MOST_KEPT)
        self.answers, self.answer_bytes = Counts(), Counts()
        self._typical: dict[str, float] = {}

    def typical(self, name: str) -> float:
        return self._typical.get(name, TYPICAL_S)

    def took(self, name: str, seconds: float) -> None:
        """What a request really took; the newest counts for a quarter."""
        mean = (3 * self.typical(name) + seconds) / 4
        self._typical.pop(name, None)
        if len(self._typical) >= MOST_KEPT:
            del self._typical[next(iter(self._typical))]
        self._typical[name] = mean


class Limits:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts = {share.name: Account(share, clock) for share in SHARES}
        self._loop = Buckets(LOOP_PER_S, LOOP_PER_S, clock)
        self._strangers = Buckets(STRANGERS_PER_S, STRANGERS_BURST, clock)
        self._passers = Buckets(PASSERS_PER_S, PASSERS_BURST, clock)
        self._watches = Counts()
        self._waiting = 0
        self._unpaid_s = 0.0  # of everybody, since it was last asked whether the loop is busy

    def _account(self, caller: Caller, *, writes: bool) -> Account | None:
        share = share_of(caller, writes=writes)
        return None if share is None else self._accounts[share.name]

    def request(self, caller: Caller, *, writes: bool = False) -> None:
        """Raises Refusal 429 when the caller asks too often, or its class takes what is left for others and the caller
        more than an equal part of that."""
        account = self._account(caller, writes=writes)
        if account is None:
            return
        share = account.share
        if wait_s := account.requests.take(caller.name):
            raise _too_many(f"{caller.name} asks more than {share.requests_per_s:g} times a second", wait_s)
        if not (wait_s := account.together.lacks("")) or not self._is_busy():
            return
        if account.parts.is_over(caller.name, share.class_per_s):
            together = f"{share.name} take more than {share.class_per_s:.0%} of our time"
            raise _too_many(f"{together}, and {caller.name} an equal part or more", wait_s)

    def _is_busy(self) -> bool:
        self._loop.charge("", self._unpaid_s)
        self._unpaid_s = 0.0
        return self._loop.lacks("") > 0

    async def turn(self, caller: Caller, *, writes: bool) -> float:
        """Returns when the caller has time left, with what was reserved of it; raises Refusal 429."""
        account = self._account(caller, writes=writes)
        if account is None:
            return 0.0
        share = account.share
        reserved = min(account.typical(caller.name), share.loop_burst)
        wait_s = account.loop.reserve(caller.name, reserved)
        if wait_s > LONGEST_TURN_S:
            account.loop.charge(caller.name, -reserved)
            raise _too_long(caller, share, wait_s)
        if wait_s:
            await asyncio.sleep(wait_s)
        return reserved

    async def begin(self, caller: Caller) -> None:
        """Between the body of a write and the work, until `end`: what the caller's other requests took since its turn
        counts, however many of them were let in before anything was known of them. Raises Refusal 429."""
        account = self._account(caller, writes=True)
        if account is None:
            return
        share, used, came = account.share, account.used, self._clock()

        def wait_s() -> float:
            lacks_s = used.lacks(caller.name)
            if lacks_s and self._clock() - came + lacks_s > LONGEST_TURN_S:
                raise _too_long(caller, share, lacks_s)
            return lacks_s

        wait_s()
        await account.desks.begin(caller.name, lambda: used.lacks(caller.name, share.loop_burst / 2) > 0, wait_s)

    def end(self, caller: Caller) -> None:
        if account := self._account(caller, writes=True):
            account.desks.end(caller.name)

    def ask_again(self, caller: Caller, *, writes: bool) -> None:
        """The same without waiting: of a read that came with a message, since a watch never ends, and before a thread
        begins to work for a request."""
        if (account := self._account(caller, writes=writes)) is None:
            return
        if (wait_s := account.used.lacks(caller.name)) > LONGEST_TURN_S:
            raise _too_long(caller, account.share, wait_s)

    def settle(self, caller: Caller, reserved: float, took_s: float, *, writes: bool) -> None:
        """A request is over; its time was `spent` step by step."""
        if account := self._account(caller, writes=writes):
            account.loop.charge(caller.name, -reserved)
            account.took(caller.name, took_s)

    async def rest(self, caller: Caller, *, writes: bool) -> None:
        """Between two lines of a watch: others have a turn, and longer where its caller has used up its time."""
        account = self._account(caller, writes=writes)
        wait_s = account.loop.lacks(caller.name) if account else 0.0
        await asyncio.sleep(min(wait_s, LONGEST_TURN_S))

    async def passer_by(self, source: str) -> None:
        """Someone asks what anyone may: never refused, and slowed down where it comes too often."""
        if self._passers.take(network(source)):
            await self.hold_back()

    async def hold_back(self) -> None:
        """Before a refusal is sent: who asks again at once asks less often."""
        if self._waiting < MOST_WAITING:
            self._waiting += 1
            try:
                await asyncio.sleep(PENALTY_S)
            finally:
                self._waiting -= 1

    def received(self, caller: Caller, size: int) -> None:
        """So many bytes of a request's body; raises Refusal 429."""
        account = self._account(caller, writes=True)
        if account is None:
            return
        if wait_s := account.bytes.lacks(caller.name):
            most = f"{account.share.bytes_per_s:g} bytes"
            raise _too_many(f"{caller.name} writes more than {most} a second", wait_s, CLOSE)
        account.bytes.charge(caller.name, size)

    def may_store(self, caller: Caller) -> None:
        """Raises Refusal 429 when the caller has stored its share."""
        account = self._account(caller, writes=True)
        if account and (wait_s := account.stored.lacks(caller.name)):
            most = f"{account.share.stored_burst / MIB:g} MiB"
            raise _too_many(f"{caller.name} has stored more than {most}: delete what is not needed", wait_s)

    def stored(self, caller: Caller, grown: int) -> None:
        """By so many bytes did what is stored grow, or shrink."""
        if account := self._account(caller, writes=True):
            account.stored.charge(caller.name, grown)

    def spent(self, caller: Caller, seconds: float, *, writes: bool, reserved: float = 0.0) -> None:
        """Of the event loop's time, for a request of the caller; so much of it was reserved."""
        self._unpaid_s += seconds
        if account := self._account(caller, writes=writes):
            account.loop.charge(caller.name, seconds - reserved)
            account.used.charge(caller.name, seconds)
            account.together.charge("", seconds)
            account.parts.add(caller.name, seconds)

    def open_answer(self, caller: Caller, *, writes: bool) -> None:
        """Until `close_answer`; raises Refusal 429 when the caller has too many under way."""
        account = self._account(caller, writes=writes)
        if account is None:
            return
        most = account.share.answers
        if account.answers[caller.name] >= most:
            raise _too_many(f"{caller.name} has {most} requests under way; wait for their answers", 1.0)
        account.answers.add(caller.name, 1)

    def size_answer(self, caller: Caller, size: int, *, writes: bool) -> None:
        """How large an open answer is; raises Refusal 429 when nobody reads what was answered before."""
        account = self._account(caller, writes=writes)
        if account is None:
            return
        held = account.answer_bytes
        if held[caller.name] and held[caller.name] + size > account.share.answer_bytes:
            raise _too_many(f"{caller.name} has {held[caller.name]} bytes of answers to read first", 1.0)
        held.add(caller.name, size)

    def close_answer(self, caller: Caller, size: int, *, writes: bool) -> None:
        if account := self._account(caller, writes=writes):
            account.answers.add(caller.name, -1)
            account.answer_bytes.add(caller.name, -size)

    def stranger(self, source: str) -> None:
        """An attempt without a valid token; raises Refusal 429 when there were too many from there."""
        if wait_s := self._strangers.take(network(source)):
            raise _too_many(f"too many attempts without a valid token from {source}", wait_s)

    def is_tired_of(self, source: str) -> bool:
        """Whether the next attempt without a valid token from there would be one too many."""
        return self._strangers.lacks(network(source), 1) > 0

    @property
    def watches(self) -> int:
        """Open ones, of all callers."""
        return self._watches.total

    @contextmanager
    def watch(self, caller: Caller) -> Iterator[None]:
        """For as long as a watch is open; raises Refusal 429 when the caller has too many."""
        self.open_watch(caller)
        try:
            yield
        finally:
            self.close_watch(caller)

    def open_watch(self, caller: Caller) -> None:
        has, share = self._watches[caller.name], share_of(caller, writes=False)
        if share is not None and has >= share.watches:
            raise _too_many(f"{caller.name} has {has} watches open; close some", 1.0)
        self._watches.add(caller.name, 1)

    def close_watch(self, caller: Caller) -> None:
        self._watches.add(caller.name, -1)


def network(source: str) -> str:
    """Who counts as one stranger: an IPv4 address, or the /64 that one IPv6 host is given."""
    try:
        address = ip_address(source)
    except ValueError:
        return source
    if not isinstance(address, IPv6Address):
        return source
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


CLOSE: Final = {"connection": "close"}  # the rest of the body is not read


def _too_long(caller: Caller, share: Share, wait_s: float) -> Refusal:
    return _too_many(f"what {caller.name} asks takes more than {share.loop_per_s:.0%} of our time", wait_s)


def _too_many(message: str, wait_s: float, headers: dict[str, str] | None = None) -> Refusal:
    seconds = str(min(3600, max(1, round(wait_s + 0.5))))
    text = f"{message}; try again in {seconds} s"
    return Refusal(429, text, {"retry-after": seconds, **(headers or {})})
