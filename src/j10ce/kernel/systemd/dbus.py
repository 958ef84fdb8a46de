"""Calls to systemd over D-Bus, made synchronously from the one thread that changes the machine.

dbus-fast is imported by the first connection, so that only systemd hosts pay for it. Between calls nobody reads the
socket; no signal may therefore stay subscribed: a match rule lives only while its job runs.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from j10ce.errors import QosError

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

SYSTEM_BUS: Final = "unix:path=/run/dbus/system_bus_socket"
TIMEOUT_S: Final = 12.0  # of one call, and of slow ones in a row 18 at most: the ring's watchdog waits for 30
QUICK_S: Final = 0.5  # an answer within that tries nobody's patience
SHORTEST_S: Final = 0.05  # with less left there is no point in asking
REGAINED: Final = 1 / 3  # of patience, per second
RETRY_S: Final = 2.0

SYSTEMD: Final = "org.freedesktop.systemd1"
MANAGER_PATH: Final = "/org/freedesktop/systemd1"
MANAGER: Final = "org.freedesktop.systemd1.Manager"
PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_LOST: Final = (OSError, EOFError)

T = TypeVar("T")


class CallFailed(QosError):
    """systemd or the bus said no. `error` is the last word of the D-Bus error: NoSuchUnit, UnitExists, Timeout."""

    def __init__(self, error: str, words: str) -> None:
        self.error = error
        self.words = words
        super().__init__(f"systemd said {error}: {words}")


class Typed(NamedTuple):
    """A value with its D-Bus signature: what systemd wants for each property."""

    signature: str
    value: Any


class Bus(Protocol):
    """One connection to a systemd manager. Every method raises CallFailed, and returns within a bounded time."""

    def call(
        self, member: str, signature: str = "", *body: Any, path: str = MANAGER_PATH, interface: str = MANAGER
    ) -> Any:
        """The first value of the reply, variants resolved; None for an empty reply."""
        ...

    def run_job(self, unit: str, member: str, signature: str, *body: Any) -> None:
        """A call that starts a job for `unit`; returns when the job is done, raises when it ends in any other way."""
        ...

    def close(self) -> None: ...


class Patience:
    """How long one may still wait: slow calls use it up, time brings it back.

    Whoever makes seven calls to a manager that is silent waits for the first one alone.
    """

    def __init__(self, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_s = self._left_s = most_s
        self._clock = clock
        self._at = clock()

    def left(self) -> float:
        now = self._clock()
        self._left_s = min(self._most_s, self._left_s + (now - self._at) * REGAINED)
        self._at = now
        return self._left_s

    def spend(self, seconds: float) -> None:
        if seconds > QUICK_S or seconds >= self._left_s:
            self._left_s = max(0.0, self._left_s - seconds)
            self._at = self._clock()


class Connection:
    """Bus over a unix socket. Connects on first use, and again when the bus was lost.

    Two threads may call (the kernel thread and the one for slow knobs); calls do not overlap.
    """

    def __init__(self, address: str = SYSTEM_BUS, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self._patience = Patience(timeout_s)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bus: MessageBus | None = None

    def call(
        self, member: str, signature: str = "", *body: Any, path: str = MANAGER_PATH, interface: str = MANAGER
    ) -> Any:
        async def go() -> Any:
            return await _ask(await self._connected(), member, signature, body, path, interface)

        return self._run(go, member)

    def run_job(self, unit: str, member: str, signature: str, *body: Any) -> None:
        async def go() -> None:
            await _job(await self._connected(), unit, member, signature, body)

        self._run(go, f"{member} {unit}")

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                _outside_loops(partial(self._loop.run_until_complete, self._drop()))
                self._loop.close()
                self._loop = None

    def _run(self, go: Callable[[], Coroutine[Any, Any, T]], what: str) -> T:
        left_s = self._patience.left()
        if left_s < min(SHORTEST_S, self.timeout_s) or not self._lock.acquire(timeout=left_s):
            raise CallFailed("Timeout", f"{what} is not asked: the calls before it took too long")
        try:
            return _outside_loops(partial(self._drive, go, what, left_s))
        finally:
            self._lock.release()

    def _drive(self, go: Callable[[], Coroutine[Any, Any, T]], what: str, within_s: float) -> T:
        if self._loop is None:
            importlib.import_module("dbus_fast.aio")  # not on the clock of the first call
            self._loop = asyncio.new_event_loop()
        begun = time.monotonic()
        try:
            return self._loop.run_until_complete(asyncio.wait_for(go(), within_s))
        except TimeoutError:
            self._loop.run_until_complete(self._drop())  # a late reply must not meet the next call
            raise CallFailed("Timeout", f"no answer to {what} within {within_s:.2g} s") from None
        except _LOST as e:
            self._loop.run_until_complete(self._drop())
            raise CallFailed("Disconnected", f"{what} over {self.address}: {e!r}") from e
        finally:
            self._patience.spend(time.monotonic() - begun)

    async def _connected(self) -> MessageBus:
        await asyncio.sleep(0)  # lets the end of a lost connection be noticed
        if self._bus is None or not self._bus.connected:
            await self._drop()
            self._bus = await _connect(self.address)
            await _ask(self._bus, "Subscribe")  # without a subscriber systemd sends no JobRemoved
        return self._bus

    async def _drop(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            await _disconnect(bus)


if TYPE_CHECKING:
    _: Bus = Connection()


def _outside_loops(work: Callable[[], T]) -> T:
    """One loop cannot run inside another: an agent that starts or ends has its own, so a thread is borrowed there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(work).result()


async def watch_reloads(on_reload: Callable[[], None], address: str = SYSTEM_BUS, retry_s: float = RETRY_S) -> None:
    """Call back after every daemon-reload: systemd has just reset what was not set through it. Runs until cancelled.

    Called once more whenever the watch begins or a lost bus is back: what happened meanwhile is unknown.
    """
    while True:
        try:
            bus = await _connect(address)
            try:
                await _hear_reloads(bus, on_reload)
            finally:
                await _disconnect(bus)
        except (*_LOST, CallFailed):
            pass  # the bus restarts, or is not there yet
        await asyncio.sleep(retry_s)


async def _hear_reloads(bus: MessageBus, on_reload: Callable[[], None]) -> None:
    def heard(message: Message) -> None:
        if message.member == "Reloading" and message.body == [False]:
            on_reload()

    bus.add_message_handler(heard)
    _match(bus, "AddMatch", _signal("Reloading"))
    await _ask(bus, "Subscribe")
    on_reload()
    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]


async def _connect(address: str) -> MessageBus:
    from dbus_fast.aio import MessageBus
    from dbus_fast.errors import AuthError, InvalidAddressError

    try:
        return await MessageBus(bus_address=address).connect()
    except (AuthError, InvalidAddressError) as e:
        raise CallFailed("Disconnected", f"{address}: {e}") from e


async def _disconnect(bus: MessageBus) -> None:
    if bus.connected:
        bus.disconnect()
    with suppress(*_LOST):  # the call that noticed has raised why it was lost
        await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]


async def _ask(
    bus: MessageBus,
    member: str,
    signature: str = "",
    body: tuple[Any, ...] = (),
    path: str = MANAGER_PATH,
    interface: str = MANAGER,
) -> Any:
    from dbus_fast import Message, MessageType
    from dbus_fast.unpack import unpack_variants

    reply = await bus.call(Message(SYSTEMD, path, interface, member, signature=signature, body=_variants(body)))
    if reply is None:
        raise EOFError("the bus closed the connection")
    if reply.message_type is MessageType.ERROR:
        words = str(reply.body[0]) if reply.body else "no further words"
        raise CallFailed(str(reply.error_name).rpartition(".")[2], words)
    return unpack_variants(reply.body[0]) if reply.body else None


async def _job(bus: MessageBus, unit: str, member: str, signature: str, body: tuple[Any, ...]) -> None:
    ended: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def heard(message: Message) -> None:
        if message.member == "JobRemoved" and message.signature == "uoss":
            ended.put_nowait((message.body[1], message.body[3]))

    rule = f"{_signal('JobRemoved')},arg2='{unit}'"
    bus.add_message_handler(heard)
    _match(bus, "AddMatch", rule)
    try:
        job = await _ask(bus, member, signature, body)
        path, result = await ended.get()
        while path != job:
            path, result = await ended.get()
    finally:
        bus.remove_message_handler(heard)
        _match(bus, "RemoveMatch", rule)
    if result != "done":
        raise CallFailed("JobFailed", f"{member} {unit} ended as {result!r}")


def _match(bus: MessageBus, member: str, rule: str) -> None:
    """Sent ahead of the call that it serves, without a reply: the bus keeps the order."""
    from dbus_fast import Message, MessageFlag

    name, path, quiet = "org.freedesktop.DBus", "/org/freedesktop/DBus", MessageFlag.NO_REPLY_EXPECTED
    bus.send(Message(name, path, name, member, flags=quiet, signature="s", body=[rule]))


def _signal(member: str) -> str:
    return f"type='signal',sender='{SYSTEMD}',path='{MANAGER_PATH}',interface='{MANAGER}',member='{member}'"


def _variants(body: Any) -> Any:
    from dbus_fast import Variant

    if isinstance(body, Typed):
        return Variant(body.signature, body.value)
    return [_variants(item) for item in body] if isinstance(body, list | tuple) else body
