"""What a user of the same machine tries, one function per attack: a folder, a process, the socket of the agent."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from j10ce.agent.config import AgentConfig, check
from j10ce.agent.plugins.installed import installed
from j10ce.agent.plugins.process import PluginProcess
from j10ce.agent.ring.what_if import whatif
from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.operations import Operations
from j10ce.agent.socket.routes import PlanRequest, _body
from j10ce.agent.socket.turns import Turns
from j10ce.cli.client import Client
from j10ce.cli.fleet.certs import client_command
from j10ce.cli.fleet.tokens import create_command
from j10ce.cli.manifests import load
from j10ce.cli.peers import Peers
from j10ce.errors import Conflict, Denied, Invalid
from j10ce.host.child import python
from j10ce.http.client import Peer, call, stream
from j10ce.http.server import Request
from j10ce.testing import build
from tests.agent.process import AgentProcess
from tests.cli.session import AS_NOBODY, NOBODY, PATIENCE_S, Session, eventually, free_port, session
from tests.security.local import local_user
from tests.security.local.local_user import MODULES, TRAP, WITH_NUMBER, Trap, nobody_asks, nobody_s, opened, plugin
from tests.style.sources import dotted, product


@pytest.fixture
def agent(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    """Whose socket `nobody` may write to."""
    one = opened(AgentProcess(tmp_path, f"j10cetest-{os.getpid()}", clone))
    yield one
    one.clean()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[AgentProcess]:
    """One for the attacks that leave nothing behind."""
    folder = tmp_path_factory.mktemp("shared")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    one = opened(AgentProcess(folder, f"j10cetest-{os.getpid()}-shared", clone))
    yield one.start()
    one.clean()


@pytest.fixture
def cli(tmp_path: Path, clone: Path) -> Iterator[Session]:
    with session(tmp_path, clone) as one:
        yield one


STARTERS = [
    pytest.param(["run", "--name", "x", "--", "true"], id="run"),
    pytest.param(["adopt", "--pid", "1"], id="adopt"),
    pytest.param(["up", "--listen", "127.0.0.1:{port}"], id="up"),
    pytest.param(["prove", "--quick", "-y", "--rounds", "1", "--seconds", "1"], id="prove"),
]


@pytest.mark.host
@pytest.mark.parametrize("words", STARTERS)
def test_code_in_the_folder_where_root_types_a_command_is_not_run(cli: Session, words: list[str]) -> None:
    trap = Trap(cli)
    started(cli, words, cwd=trap.folder, env={k: v for k, v in cli.environ.items() if k != "PYTHONPATH"})
    assert trap.seen.read_text() == ""


@pytest.mark.host
@pytest.mark.parametrize("words", STARTERS)
def test_an_environment_decides_nothing_about_the_code_that_is_started(cli: Session, words: list[str]) -> None:
    trap = Trap(cli)
    # The command itself is run apart from its environment, as sudo does; what it starts is what is looked at.
    started(cli, words, cwd=trap.folder, env=trap.environ(), flags=("-I",))
    assert trap.seen.read_text() == ""


def started(
    cli: Session, words: list[str], *, cwd: Path, env: dict[str, str], flags: tuple[str, ...] = ("-P",)
) -> None:
    """The command runs until the agent that it brings along has served."""
    words = [word.format(port=free_port()) for word in words]
    with (cli.folder / "out").open("w+") as out:
        command = [sys.executable, *flags, str(Path(sys.executable).with_name("j10ce-qos")), *words]
        child = subprocess.Popen(command, cwd=cwd, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, text=True)
    cli.started.append(child)
    log = cli.folder / "out"
    if words[0] == "up":
        assert eventually(lambda: "explain web" in log.read_text() or child.poll() is not None), log.read_text()
        child.send_signal(signal.SIGINT)
    code = child.wait(PATIENCE_S)
    assert "could not start" not in log.read_text(), log.read_text()
    assert (words[0], code) in {("run", 0), ("adopt", 5), ("up", 0), ("prove", 0)}, log.read_text()


def test_plugins_are_not_taken_from_the_folder_or_the_environment_of_whoever_starts_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil, seen = tmp_path / "evil", tmp_path / "seen"
    plugin(evil, "hostile", TRAP.format(seen=str(seen)))
    plugin(tmp_path / "site", "honest", "")
    for name in MODULES:
        (evil / f"{name}.py").write_text(TRAP.format(seen=str(seen)))
    monkeypatch.chdir(evil)
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(tmp_path / "site")])
    monkeypatch.setenv("PYTHONPATH", str(evil))
    assert list(installed()) == ["honest"]
    helper = PluginProcess(["hostile", "honest"], python("j10ce.agent.plugins.child"))
    try:
        at = (replace(build.snapshot(), now=n * 0.001, epoch=1) for n in range(1, 2000))
        assert eventually(lambda: [helper.ask(next(at)), helper.faults][1])
    finally:
        helper.close()
        for dying in helper._dying:
            dying.wait(PATIENCE_S)
    assert helper.faults == {"honest": "AttributeError: module 'honest' has no attribute 'Plugin'"}
    assert not seen.exists()


@pytest.mark.host
def test_a_number_that_another_process_got_meanwhile_moves_nobody(agent: AgentProcess) -> None:
    agent.start()
    agent.client.post("/v1/disarm", {})
    mine = nobody_s(agent)
    limits = {"cpu": "50m", "memory": "64Mi"}
    assert nobody_asks(agent, "POST", "/v1/workloads", {"name": "trap", "pid": mine.pid, "limits": limits})[0] == 200
    mine.kill()
    mine.wait()
    with subprocess.Popen([sys.executable, "-c", WITH_NUMBER, str(mine.pid)], stdout=subprocess.PIPE) as heir:
        assert heir.stdout is not None
        assert int(heir.stdout.readline()) == mine.pid, "someone else got the number"
        before = Path(f"/proc/{mine.pid}/cgroup").read_text()
        agent.client.post("/v1/arm", {})
        gone = eventually(lambda: agent.client.get("/v1/workloads")["items"] == [])
        after = Path(f"/proc/{mine.pid}/cgroup").read_text()
        os.kill(mine.pid, signal.SIGKILL)
        assert heir.wait(PATIENCE_S) == 0
    assert (gone, after) == (True, before)


@pytest.mark.host
@pytest.mark.parametrize("namespace", ["default", "kube-system", "j10ce-system"])
@pytest.mark.parametrize("profile", ["system", "lse", "lsr", "guaranteed-pro", "realtime"])
def test_a_privileged_profile_is_root_s_alone_whatever_namespace_is_named(
    shared: AgentProcess, profile: str, namespace: str
) -> None:
    fields = {"name": f"grab-{profile}", "namespace": namespace, "pid": nobody_s(shared).pid}
    code, answer = nobody_asks(shared, "POST", "/v1/workloads", {**fields, "profile": profile})
    assert (code, answer["message"]) == (
        403, f"profile {profile} is for root alone on this host, in whatever namespace; ask root to place it"
    )  # fmt: skip
    code, answer = nobody_asks(shared, "POST", "/v1/workloads", {**fields, "labels": {"j10ce.io/qos-profile": profile}})
    assert (code, answer["tier"]) == (200, "standard")


@pytest.mark.host
def test_half_requests_of_one_user_do_not_keep_root_from_the_kill_switch(shared: AgentProcess) -> None:
    words = [*AS_NOBODY, sys.executable, "-c", local_user.FLOOD, str(shared.run_dir / "agent.sock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdin is not None
        assert flood.stdout is not None
        assert flood.stdout.readline() == "full\n"
        root = Client(f"unix:{shared.run_dir / 'agent.sock'}", timeout=8.0)  # less than a half request may last
        assert root.post("/v1/disarm", {})["armed"] is False
        assert root.post("/v1/arm", {})["armed"] is True
        flood.stdin.close()
        assert flood.stdout.read().splitlines()[-1] == "True", "the flood gets the reason"


@pytest.mark.host
@pytest.mark.parametrize("order", ["arm", "disarm", "revert", "stop", "reload"])
def test_what_concerns_everybody_is_ordered_by_root_alone(shared: AgentProcess, order: str) -> None:
    shared.client.post("/v1/disarm" if order == "arm" else "/v1/arm", {})
    before = shared.client.get("/v1/status")["armed"]
    code, answer = nobody_asks(shared, "POST", f"/v1/{order}", {})
    said = f"only root, or the user that the agent runs as, may {order}; this is uid {NOBODY}"
    assert (code, answer["message"]) == (403, said)
    assert shared.client.get("/v1/status")["armed"] is before
    shared.client.post("/v1/arm", {})


@pytest.mark.host
def test_a_hold_is_signed_by_who_made_it(shared: AgentProcess) -> None:
    hold = {"target": "workload/default/web", "knobs": ["cpu.max"], "forSeconds": 60, "why": "x\x1b[31m", "who": "root"}
    code, answer = nobody_asks(shared, "POST", "/v1/holds", hold)
    assert (code, answer["hold"]["spec"]["who"]) == (200, "nobody")
    assert shared.client.post("/v1/holds", {**hold, "who": "alice"})["hold"]["spec"]["who"] == "alice"
    assert "\x1b" not in shared.log.read_text()
    assert "why=x\\u001b[31m" in shared.log.read_text()


@pytest.mark.host
def test_a_hold_of_root_s_is_ended_and_overruled_by_root_alone(shared: AgentProcess) -> None:
    hold = {"target": "workload/default/kept", "knobs": ["cpu.max", "cpu.weight"], "forSeconds": 60, "why": "incident"}
    shared.client.post("/v1/holds", {**hold, "who": "nobody"})
    mine = {**hold, "knobs": ["memory.max"]}
    longer = {**hold, "knobs": ["cpu.weight"], "forSeconds": 3600, "value": "2"}

    def asked(method: str, path: str, body: object) -> tuple[int, str]:
        code, answer = nobody_asks(shared, method, path, body)
        return code, answer.get("message", "")

    for end in ("", "&knobs=cpu.max"):
        code, said = asked("DELETE", f"/v1/holds?target=workload/default/kept{end}", None)
        assert (code, said.partition(" until ")[0]) == (403, "workload/default/kept is held, by nobody")
    code, said = asked("POST", "/v1/holds", longer)
    assert (code, said.partition(",")[0]) == (403, "workload/default/kept cpu.weight is held already")
    assert asked("POST", "/v1/holds", mine)[0] == 200
    code, answer = nobody_asks(shared, "DELETE", "/v1/holds?target=workload/default/kept", None)
    assert (code, answer["released"]) == (200, ["memory.max"]), "his own one"
    released = shared.client.delete("/v1/holds", target="workload/default/kept")["released"]
    assert released == ["cpu.max", "cpu.weight"]


SECRET = "dGhpcyBpcyBzZWNyZXQ"
JWT = f"eyJhbGciOiJSUzI1NiJ9.{SECRET}.c2ln"


@pytest.mark.host
@pytest.mark.parametrize(
    "why",
    [f"Authorization: Bearer {SECRET}", f"AWS_SECRET_ACCESS_KEY={SECRET}", f"https://me:{SECRET}@host/", f"as {JWT}"],
    ids=["header", "environment", "address", "service account"],
)
def test_what_a_caller_pastes_is_not_in_the_agent_s_log(shared: AgentProcess, why: str) -> None:
    fields = {"target": "workload/default/pasted", "knobs": ["cpu.max"], "forSeconds": 60, "why": why}
    assert nobody_asks(shared, "POST", "/v1/holds", fields)[0] == 200
    assert nobody_asks(shared, "DELETE", "/v1/holds?target=workload/default/pasted", None)[0] == 200
    logged = shared.log.read_text()
    assert "(removed)" in logged
    assert SECRET not in logged


FAILS = """import structlog, sys
from j10ce.daemon import logs
logs.configure("info")
def answered(authorization):
    raise RuntimeError(f"cannot send {authorization}")
try:
    answered("Authorization: Bearer " + sys.argv[1])
except RuntimeError as e:
    structlog.get_logger().exception("request.failed", findings=["token: " + sys.argv[1]], count=3)
"""


def test_a_failure_is_logged_with_its_lines_and_without_the_token() -> None:
    done = subprocess.run([sys.executable, "-c", FAILS, SECRET], capture_output=True, text=True, check=True, timeout=60)
    assert SECRET not in done.stderr
    assert "cannot send Authorization: (removed)" in done.stderr
    assert "in answered" in done.stderr
    assert "count=3" in done.stderr


@pytest.mark.host
def test_refused_requests_fill_no_memory(shared: AgentProcess) -> None:
    assert shared.process is not None
    resident = Path(f"/proc/{shared.process.pid}/smaps_rollup")

    def kib() -> int:
        return int(re.findall(r"^Rss:\s+(\d+)", resident.read_text(), re.MULTILINE)[0])

    def refused(n: int) -> int:
        fields = {"target": f"{n}" + "y" * 900_000, "knobs": ["cpu.max"], "forSeconds": 60, "why": "x"}
        code, answer = nobody_asks(shared, "POST", "/v1/holds", fields)
        assert len(json.dumps(answer)) < 2000
        return code

    assert [refused(n) for n in range(3)] == [422] * 3
    before = kib()
    assert [refused(n) for n in range(20)] == [422] * 20
    assert kib() - before < 8 * 1024
    assert nobody_asks(shared, "POST", "/v1/holds", {"why": "y" * 2_000_000})[0] == 413


@pytest.mark.host
def test_one_tenant_cannot_reserve_what_another_has(shared: AgentProcess) -> None:
    first = shared.place("first", profile="ls", minimum={"cpu": "60%"})
    assert first["unmet"] == []
    fields = {"name": "second", "pid": nobody_s(shared).pid, "profile": "ls", "minimum": {"cpu": "60%"}}
    code, answer = nobody_asks(shared, "POST", "/v1/workloads", fields)
    assert (code, answer["entitlement"]["floor"][0]) == (200, 0)
    assert "wanted" in answer["unmet"][0]
    shared.client.delete("/v1/workloads/default/first")
    assert nobody_asks(shared, "DELETE", "/v1/workloads/default/second", None)[0] == 200


async def test_a_plan_on_paper_keeps_nobody_waiting() -> None:
    operations = Operations.__new__(Operations)
    operations._planning = Turns()
    operations.shell = SimpleNamespace(report=object(), agent=object(), on_ring=at_once)  # type: ignore[assignment]
    operations._plan = lambda *_: {"thread": threading.current_thread()}  # type: ignore[method-assign]
    assert (await operations.plan([], None, Caller(1, 0, 0)))["thread"] is not threading.main_thread()


async def at_once(*_: object) -> object:
    return object()


def test_a_plan_of_more_objects_than_anyone_reads_is_refused() -> None:
    body = json.dumps({"objects": [{}] * 1025}).encode()
    with pytest.raises(Invalid, match="objects"), socket.socket() as peer:
        _body(Request("POST", "/v1/plan", {}, {}, body, peer), PlanRequest)


def test_a_key_that_stands_twice_in_a_request_is_refused() -> None:
    with pytest.raises(Invalid, match="node: duplicate field"), socket.socket() as peer:
        _body(Request("POST", "/v1/plan", {}, {}, b'{"node": {}, "node": {}}', peer), PlanRequest)


@pytest.mark.parametrize("cpu", ["10000000", "8193"])
def test_a_plan_for_a_node_larger_than_any_machine_is_refused(cpu: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": cpu}}}
    with pytest.raises(Invalid, match="more CPUs than any machine has"):
        whatif([node], build.node(), wall=build.WALL)


@pytest.mark.parametrize("url", ["http://192.0.2.1:8080", "http://example.com", "http://[2001:db8::1]:7443"])
async def test_a_token_is_not_sent_where_others_could_read_it(url: str) -> None:
    """Nobody is asked: neither address answers."""
    with pytest.raises(Denied, match="over TLS or loopback only"):
        Client(url, token="j10ce.alice.secret").get("/apis")
    with pytest.raises(Denied, match="over TLS or loopback only"):
        await call(Peer(url, token="j10ce.n1.secret"), "GET", "/apis")
    with pytest.raises(Denied, match="over TLS or loopback only"):
        async with stream(Peer(url, token_file="/nonexistent"), "/apis", quiet_s=1.0):
            pass
    assert [f.path for f in check(AgentConfig(server=f"https://cp1.example,{url}"))] == ["server"]
    assert check(AgentConfig(server="https://cp1.example,http://127.0.0.1:7443,http://[::1]:1,unix:/x")) == []


def test_two_nodes_do_not_get_one_certificate_s_name(tmp_path: Path) -> None:
    name = "a" * 64 + "victim"
    done = CliRunner().invoke(client_command, [name, "--role", "node", "--dir", str(tmp_path)])
    assert isinstance(done.exception, Invalid)
    assert "70 characters; at most 64" in str(done.exception)


def test_a_manifest_of_aliases_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghijkl")
    )
    (tmp_path / "bomb.yaml").write_text(bomb)
    with pytest.raises(Invalid, match="YAML aliases are not taken"):
        load([str(tmp_path / "bomb.yaml")])


def test_a_token_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    file, auth = tmp_path / "alice.token", tmp_path / "auth.yaml"
    words = ["alice", "--role", "editor", "--auth", str(auth), "-O", str(file)]
    done = CliRunner().invoke(create_command, words, obj=Peers())
    assert done.exception is None, done.output
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().startswith("j10ce.alice.")
    assert isinstance(CliRunner().invoke(create_command, words, obj=Peers()).exception, Conflict)


def test_a_token_that_others_can_read_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "alice.token"
    file.write_text("j10ce.alice.x")
    for mode, words in ((0o644, "can be read by others; chmod 600 it"), (0o600, "")):
        file.chmod(mode)
        assert Peers(server="https://cp1.example", token_file=str(file)).account().token == "j10ce.alice.x"
        assert words in capsys.readouterr().err


def test_every_process_that_the_product_starts_has_a_folder_and_an_environment_of_ours() -> None:
    bare = [
        f"{source.path}:{call.lineno}"
        for source in product()
        for call in source.calls()
        if dotted(call.func).startswith("subprocess.") and not {"cwd", "env"} <= {k.arg for k in call.keywords}
    ]
    assert not bare
    naming = [s.path for s in product() if any(spells_interpreter(node) for node in ast.walk(s.tree))]
    assert naming == ["src/j10ce/host/child.py"]


def spells_interpreter(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and dotted(node) == "sys.executable"
