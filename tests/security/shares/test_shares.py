"""Fair shares: what one caller uses up is its own, and whoever puts things right is never kept waiting."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
import uvloop

from j10ce.errors import Invalid
from j10ce.http.status import Refusal
from j10ce.manager import connection, server
from j10ce.manager.access.tokens import make
from j10ce.manager.asgi import beside
from j10ce.manager.changes import config
from j10ce.manager.fairness import crowd, rate_limits
from j10ce.manager.fairness.growth import growth
from j10ce.manager.fairness.metered import Meter, Metered
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.identity import NOBODY, Act, Caller, Role, acting
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Credential, CredentialSpec, Meta, Selector
from j10ce.model.schema import encode
from j10ce.model.stored import Key
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, profile
from tests.manager.assembled import BASE, Manager, assemble
from tests.security.plane import Plane

NODE, OTHER = Caller("n1", Role.NODE, "n1"), Caller("n2", Role.NODE, "n2")
EDITOR, ADMIN = Caller("eve", Role.EDITOR), Caller("adm", Role.ADMIN)


class Hand:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_time_on_the_loop_is_paid_by_whoever_used_it() -> None:
    clock = Hand()
    share = Limits(clock)
    reserved = await share.turn(NODE, writes=True)
    share.spent(NODE, 5.0, writes=True)
    share.settle(NODE, reserved, 5.0, writes=True)
    with pytest.raises(Refusal, match="takes more than 5% of our time"):
        await share.turn(NODE, writes=True)
    await share.turn(NODE, writes=False)
    await share.turn(EDITOR, writes=True)
    clock.now += 3600
    await share.turn(OTHER, writes=True)
    await share.turn(NODE, writes=True)


async def test_requests_that_come_together_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as long as those before it will take, so that they are not served all at once."""
    waited_s: list[float] = []

    async def sleep(seconds: float) -> None:
        waited_s.append(seconds)

    monkeypatch.setattr(rate_limits.asyncio, "sleep", sleep)
    share = Limits(Hand())
    for _ in range(40):  # so that it is known what they take
        share.settle(EDITOR, 0.0, 0.05, writes=False)
    for _ in range(6):
        await share.turn(EDITOR, writes=False)
    assert waited_s == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=0.01)


def test_a_class_that_takes_too_much_waits_only_while_the_loop_is_busy() -> None:
    clock = Hand()
    share = Limits(clock)
    for n in range(20):
        share.spent(Caller(f"n{n}", Role.NODE, f"n{n}"), 0.03, writes=True)
    share.request(OTHER, writes=True)
    for n in range(20):
        share.spent(Caller(f"n{n}", Role.NODE, f"n{n}"), 0.03, writes=True)
    with pytest.raises(Refusal, match="reports of nodes take more than 40% of our time"):
        share.request(Caller("n9", Role.NODE, "n9"), writes=True)
    share.request(Caller("n99", Role.NODE, "n99"), writes=True)
    share.request(EDITOR)
    share.request(Caller("n99", Role.NODE, "n99"), writes=False)


def test_what_a_node_writes_is_limited_and_another_nodes_is_not() -> None:
    share = Limits(Hand())
    for _ in range(16):
        share.received(NODE, 65_536)
    with pytest.raises(Refusal, match="writes more than 16384 bytes a second"):
        share.received(NODE, 65_536)
    share.received(OTHER, 65_536)


def test_what_an_editor_stores_is_limited_until_it_deletes() -> None:
    share = Limits(Hand())
    share.stored(EDITOR, 65 << 20)
    with pytest.raises(Refusal, match="delete what is not needed"):
        share.may_store(EDITOR)
    share.stored(EDITOR, -(20 << 20))
    share.may_store(EDITOR)


def test_the_history_of_a_policy_counts_as_stored_until_the_policy_ends() -> None:
    """Whatever the order of edits, never less than what ten revisions, the stable and the admitted one may hold."""
    small, large = profile("p"), profile("p", selector=Selector(match_labels={"app": "x" * 1000}))
    act = Act(EDITOR)
    charged = 0
    for before, after in ((None, small), (small, large), (large, small), (small, large)):
        act.before, act.after = before, after
        charged += growth(act)
        assert charged >= 12 * len(encode(after.spec))
    act.before, act.after = large, None
    assert charged + growth(act) >= 0
    act.before, act.after = None, small
    once = growth(act)
    act.before, act.after = small, None
    assert once + growth(act) == 0


async def test_yaml_of_one_caller_does_not_wait_for_all_of_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[bytes] = []

    def read(raw: bytes) -> Any:
        order.append(raw)
        return {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile"}

    monkeypatch.setattr(config.plain_yaml, "read", read)

    async def apply(caller: Caller, raw: bytes) -> None:
        with acting(Act(caller)):
            await config.read(raw, KINDS["QoSProfile"], Key("QoSProfile", "", "p"), "spec")

    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(apply(EDITOR, b"eve %d" % n))
        group.create_task(apply(Caller("alice", Role.EDITOR), b"alice"))
    assert order[:2] == [b"eve 0", b"alice"]
    assert sorted(order) == [b"alice", *(b"eve %d" % n for n in range(5))]


async def test_the_time_of_reading_yaml_is_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 50.0))
    monkeypatch.setattr(beside, "thread_time", lambda: next(times))
    share, act = Limits(Hand()), Act(EDITOR)
    meter = act.meter = Meter(share, EDITOR, writes=True)
    with acting(act), pytest.raises(Invalid):
        await Metered(config.read(b"- a", KINDS["QoSProfile"], Key("QoSProfile", "", "p"), "spec"), meter)
    meter.settle()
    with pytest.raises(Refusal, match="takes more than 25% of our time"):
        await share.turn(EDITOR, writes=True)


def test_open_answers_are_counted_and_weighed() -> None:
    share = Limits(Hand())
    for _ in range(rate_limits.PEOPLE.answers):
        share.open_answer(EDITOR, writes=False)
    with pytest.raises(Refusal, match="requests under way"):
        share.open_answer(EDITOR, writes=False)
    share.close_answer(EDITOR, 0, writes=False)
    share.open_answer(EDITOR, writes=False)
    share.size_answer(EDITOR, 100 << 20, writes=False)  # one is always possible
    with pytest.raises(Refusal, match="to read first"):
        share.size_answer(EDITOR, 1 << 20, writes=False)


def test_an_administrator_is_in_no_class_and_a_stranger_is_not_people() -> None:
    share = Limits(Hand())
    for _ in range(1_000):
        share.spent(NOBODY, 1.0, writes=False)
        share.spent(ADMIN, 1.0, writes=True)
        share.received(ADMIN, 1 << 20)
        share.stored(ADMIN, 1 << 20)
        share.open_answer(ADMIN, writes=True)
        share.may_store(ADMIN)
        share.request(ADMIN, writes=True)
        share.open_watch(ADMIN)
    share.request(EDITOR)


async def test_only_the_steps_of_the_work_itself_are_counted() -> None:
    """Not the time in which it waits, and nothing is lost when it is cancelled."""
    share, waiting = Limits(Hand()), asyncio.Event()
    meter = Meter(share, EDITOR, writes=False)

    async def work() -> str:
        burn(0.02)
        await asyncio.sleep(0)
        waiting.set()
        try:
            await asyncio.Event().wait()  # which nobody sets
        except asyncio.CancelledError:
            burn(0.02)
        return "ended well"

    task = asyncio.get_running_loop().create_task(waited(Metered(work(), meter)))
    await waiting.wait()
    burn(0.2)  # on the same loop, by somebody else
    task.cancel()
    assert await task == "ended well"
    assert 0.04 <= meter.took_s < 0.2
    with pytest.raises(KeyError):
        await waited(Metered(broken(), meter))


async def waited(work: Metered[str]) -> str:
    return await work


async def broken() -> str:
    await asyncio.sleep(0)
    raise KeyError


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def enrolled(manager: Manager, name: str, role: Any, node: str = "") -> httpx.AsyncClient:
    token, hash_ = make(name)
    made = Credential(metadata=Meta(name=name), spec=CredentialSpec(role=role, hash=hash_, node=node))
    manager.keyring.take(made)
    return manager.client(authorization=f"Bearer {token}")


async def test_whoever_writes_too_much_hears_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "count", lambda *_: None)  # or a slow machine would name the time that it took,
    monkeypatch.setattr(Meter, "pay_for_thread", lambda *_: None)
    manager = assemble(MemoryStore(lambda: WALL), clock=Hand())  # or a slow machine would write no more than it may
    profile = {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "spec": {"tier": "standard"}}
    async with await enrolled(manager, "eve", "editor") as eve, manager.client() as owner:
        answers = []
        for n in range(20):
            made = {**profile, "metadata": {"name": f"p{n}"}, "unknown": "x" * 1_000_000}
            answers.append(await eve.post(f"{BASE}/qosprofiles", json=made))
        assert (answers[0].status_code, answers[-1].status_code) == (422, 429)
        assert "eve writes more than" in answers[-1].json()["message"]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await owner.get(f"{BASE}/qosprofiles")).status_code == 200


async def test_whoever_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_S", 0.3)
    ended = asyncio.Event()

    async def app(scope: object, receive: Any, send: Callable[[object], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    sock = socket.create_server(("127.0.0.1", 0))
    one = uvicorn.Server(
        uvicorn.Config(app, http=connection.BoundedProtocol, lifespan="off", log_config=None, ws="none")
    )  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        group.create_task(one._serve([sock]))
        deaf = socket.create_connection(sock.getsockname())
        deaf.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await ended.wait()
        deaf.close()
        one.should_exit = True
    sock.close()


async def test_silent_connections_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MOST_UNKNOWN_OF_ONE", 20)

    async def app(scope: Any, receive: Any, send: Callable[[object], Awaitable[None]]) -> None:
        if scope["path"] == "/known":
            scope["state"]["known"](EDITOR)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    sock = socket.create_server(("127.0.0.1", 0))
    one = uvicorn.Server(
        uvicorn.Config(app, http=connection.BoundedProtocol, lifespan="off", log_config=None, ws="none")
    )  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        group.create_task(one._serve([sock]))
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        writer.write(b"GET /known HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        silent = [await asyncio.open_connection(*sock.getsockname()) for _ in range(60)]
        assert [await reader.read() for reader, _ in silent[:40]] == [b""] * 40, "the first of them are gone"
        writer.write(b"GET /again HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"), "who is known stays"
        for _, other in [*silent, (reader, writer)]:
            other.close()
        one.should_exit = True
    sock.close()


class Fillable(MemoryStore):
    share, written = 0.0, 0

    def fullness(self) -> float:
        return self.share


async def test_a_store_that_fills_refuses_reports_first_and_never_an_administrator() -> None:
    store = Fillable(lambda: WALL)
    made = assemble(store)
    node, eve = await enrolled(made, "n1", "node", node="n1"), await enrolled(made, "eve", "editor")
    body = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n1"}}

    async def codes() -> list[int]:
        merge = {"content-type": "application/merge-patch+json"}
        store.written += 1  # so that something changes
        report = {"status": {"node": {"workloads": store.written}}}
        profile = {
            **body,
            "kind": "QoSProfile",
            "metadata": {"name": f"p{store.written}"},
            "spec": {"tier": "standard"},
        }
        reply = [
            await node.patch(f"{BASE}/nodeqoses/n1/status", json=report, headers=merge),
            await eve.post(f"{BASE}/qosprofiles", json=profile),
            await owner.post(f"{BASE}/qosprofiles", json={**profile, "metadata": {"name": f"q{store.written}"}}),
            await eve.delete(f"{BASE}/qosprofiles/q{store.written}"),
        ]
        return [answer.status_code for answer in reply]

    async with node, eve, made.client() as owner:
        assert (await node.post(f"{BASE}/nodeqoses", json=body)).status_code == 201
        collected = []
        for store.share in (0.79, 0.85, 0.96):
            collected.append(await codes())
    assert collected == [[200, 201, 201, 200], [503, 201, 201, 200], [503, 503, 201, 200]]


async def test_who_does_not_even_say_hello_is_sent_away(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.3)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(plane.pki / "server.crt", plane.pki / "server.key")
    sock = socket.create_server(("127.0.0.1", 0))
    one = server.Server(None, context)
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        group.create_task(one._serve([sock]))
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        writer.close()
        one.should_exit = True
    sock.close()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_who_does_not_even_say_hello_makes_room_for_others(
    plane: Plane, monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    monkeypatch.setattr(crowd, "MOST_UNKNOWN_OF_ONE", 20)
    monkeypatch.setattr(server, "HANDSHAKE_S", 3600.0)  # they do not leave by themselves
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(plane.pki / "server.crt", plane.pki / "server.key")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def app(scope: Any, receive: Any, send: Callable[[object], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def tried() -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            one = server.Server(app, context)
            async with asyncio.TaskGroup() as group, asyncio.timeout(30):
                group.create_task(one._serve([sock]))
                silent = [await asyncio.open_connection(*sock.getsockname()) for _ in range(60)]
                for reader, _ in silent[:40]:
                    assert await ended(reader), "the first of them are gone"
                reader, writer = await asyncio.open_connection(*sock.getsockname(), ssl=trusting)
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
                for _, other in [*silent, (reader, writer)]:
                    other.close()
                one.should_exit = True

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(tried())


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True
