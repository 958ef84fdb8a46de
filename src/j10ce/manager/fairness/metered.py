"""How long a request keeps the event loop from everybody else: the processor time of its own steps, waiting aside."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from time import perf_counter, thread_time
from typing import Any, Final, Generic, TypeVar

from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.identity import Caller

T = TypeVar("T")
RECENT_S: Final = 0.002
SHORT_S: Final = 0.001


class Meter:
    """The time of one request: reserved before it begins, counted step by step, paid when it is over.

    What takes long, such as a watch, pays in between, and a long step at once: other requests of the same caller are
    asked what it has left. What a thread did for it counts as well: they share a processor.
    """

    __slots__ = ("_limits", "_paid_s", "_reserved", "_turned", "_working", "_writes", "caller", "took_s")

    def __init__(self, limits: Limits, caller: Caller, writes: bool) -> None:
        """`caller`: as far as it is known yet."""
        self._limits, self.caller, self._writes = limits, caller, writes
        self._reserved = self._paid_s = self.took_s = 0.0
        self._turned = self._working = False

    async def turn(self) -> None:
        """Returns when it is the caller's turn; raises Refusal 429."""
        self._reserved = await self._limits.turn(self.caller, writes=self._writes)
        self._turned = True

    async def begin(self) -> None:
        """What was sent is there; returns when it may be looked at. Raises Refusal 429."""
        if not self._writes:
            self.ask()
        elif not self._working:
            await self._limits.begin(self.caller)
            self._working = True

    def ask(self) -> None:
        self._limits.ask_again(self.caller, writes=self._writes)

    def pay_for_thread(self, seconds: float) -> None:
        self.took_s += seconds
        self._pay(seconds)

    def answered(self) -> None:
        """The work is done, and paid before others of the same caller begin."""
        if self._working:
            self._working = False
            self._pay(self.took_s - self._paid_s)
            self._limits.end(self.caller)

    def count(self, seconds: float) -> None:
        """A step of the work."""
        self.took_s += seconds
        if seconds > SHORT_S:
            self._pay(seconds)

    def settle(self) -> None:
        self.answered()
        if self._turned:
            self._limits.settle(self.caller, self._reserved, self.took_s, writes=self._writes)
            self._reserved, self._turned = 0.0, False
        self.pay()

    async def rest(self) -> None:
        """For a watch, after lines that took long."""
        self.pay()
        await self._limits.rest(self.caller, writes=self._writes)

    def pay(self) -> None:
        self._pay(self.took_s - self._paid_s)
        self.took_s = self._paid_s = 0.0

    def _pay(self, seconds: float) -> None:
        back = min(self._reserved, seconds)
        self._reserved -= back
        self._paid_s += seconds
        self._limits.spent(self.caller, seconds, writes=self._writes, reserved=back)


class Processor:
    """The processor time of steps. The kernel is asked rarely: that takes longer than most steps do.

    A short step counts by the clock. A long one may have been interrupted, so it counts what the processor did since it
    was last asked, which was just before.
    """

    def __init__(self) -> None:
        self._asked = self._had_s = 0.0

    def begin(self) -> float:
        now = perf_counter()
        if now - self._asked > RECENT_S:
            self._asked, self._had_s = now, thread_time()
        return now

    def took(self, began: float) -> float:
        now = perf_counter()
        if now - began < SHORT_S:
            return now - began
        before, self._asked, self._had_s = self._had_s, now, thread_time()
        return min(now - began, max(0.0, self._had_s - before))


PROCESSOR: Final = Processor()  # of the thread that the event loop has


class Metered(Generic[T]):
    """Awaits `work`, and adds the seconds of every step to its meter.

    Processor time, not the clock's: a machine that is busy with something else is nobody's fault here.
    """

    __slots__ = ("_meter", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], meter: Meter) -> None:
        self._work, self._meter = work, meter

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[Any], Any] = self._work.send
        meter, given = self._meter, None
        while True:
            began = PROCESSOR.begin()
            try:
                waited = step(given)
            except StopIteration as e:
                return e.value  # type: ignore[no-any-return]
            finally:
                meter.count(PROCESSOR.took(began))
            try:
                step, given = self._work.send, (yield waited)
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as e:  # a cancellation, say: it is the work's to deal with
                step, given = self._work.throw, e
