"""`run` as a process: inside before the first instruction, exit codes, the terminal, and the agent it brings along."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
import threading
import time

import pytest

from tests.cli.session import PATIENCE_S, Session, cgroup, eventually

pytestmark = pytest.mark.host
LIMIT, WEIGHT, BY_DEFAULT = ("cpu.cfs_quota_us", "cpu.max"), ("cpu.shares", "cpu.weight"), ("1024\n", "100\n")
OWN_CGROUPS = "import sys; sys.stdout.write(open('/proc/self/cgroup').read())"


def test_the_command_is_inside_before_its_first_instruction(stack: Session) -> None:
    output = stack.says("run", "--profile", "ls", "--name", "first", "--", sys.executable, "-S", "-c", OWN_CGROUPS)
    paths = {c: line.split(":", 2)[2] for line in output.splitlines() for c in line.split(":")[1].split(",")}
    wanted = {"cpu", "memory", "cpuset"} & paths.keys() or {""}
    assert {paths[c] for c in wanted} == {f"/{stack.top}/sensitive/default_first"}


def test_without_a_profile_it_is_managed_as_burstable(stack: Session) -> None:
    stack.running("plain")
    status = stack.json("get", "workloads", "plain")["status"]
    assert (status["profile"], status["cgroup"]) == ("burstable", f"{stack.top}/standard/default_plain")


def test_labels_choose_a_profile_by_its_selector(stack: Session) -> None:
    stack("apply", "-f", "examples/standalone/profile.yaml")
    chosen = ("run", "--name", "db", "--label", "role=database", "--", "true")
    assert eventually(lambda: "sensitive" in stack(*chosen, code=None).stderr)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param(["true"], 0, id="success"),
        pytest.param(["sh", "-c", "exit 42"], 42, id="the command's own"),
        pytest.param(["sh", "-c", "kill -KILL $$"], 137, id="128 + the signal that ended it"),
        pytest.param(["/nonexistent"], 127, id="not found"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
    ],
)
def test_exit_codes(stack: Session, command: list[str], code: int) -> None:
    stack("run", "--quiet", "--", *command, code=code)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        pytest.param(
            ["--name", "../x"], 125, "name = '../x': not a name; use lower-case letters", id="a name that escapes"
        ),
        pytest.param(["--name", "UP"], 125, "name = 'UP': not a name", id="a name in capitals"),
        pytest.param(["--profile", "nope"], 125, "'nope': unknown profile; use one of be, best-effort,", id="profile"),
        pytest.param(["--min-cpu", "64"], 125, "cpu 64 wanted, ", id="a minimum that does not fit"),
        pytest.param(["--min-memory", "900Ti"], 125, "memory 900Ti wanted, ", id="more memory than there is"),
        pytest.param(
            ["--cpu", "500m", "--min-cpu", "1"], 125, "minimum.cpu = '1': above the limit of 500m", id="limit"
        ),
        pytest.param(
            ["--memory", "512Mi", "--request-memory", "1Gi"],
            125,
            "requests.memory = '1Gi': above the limit",
            id="request",
        ),
        pytest.param(
            ["--memory", "0"], 125, "limits.memory = '0': leaves it nothing; give more than 0", id="no memory"
        ),
        pytest.param(["--cpu", "0"], 125, "limits.cpu = '0': leaves it nothing; give more than 0", id="no CPU"),
        pytest.param(["--min-cpu", "lots"], 2, "'lots': not a quantity; write a number", id="no quantity"),
        pytest.param(["--label", "web"], 2, "'web' is no label; write KEY=VALUE", id="no label"),
    ],
)
def test_what_cannot_be_done_is_not_started_and_says_why(
    stack: Session, options: list[str], code: int, says: str
) -> None:
    ended = stack("run", *options, "--", "echo", "started", code=code)
    assert says in ended.stderr
    assert ended.stdout == ""


def test_a_kill_at_the_memory_limit_is_reported(stack: Session) -> None:
    hungry = ("--", sys.executable, "-S", "-c", "x = bytearray(200 << 20)")
    output = stack.fails(137, "run", "--name", "hungry", "--memory", "20Mi", *hungry)
    assert "default/hungry was killed: it reached its memory limit of 20Mi" in output
    output = stack.fails(137, "run", "--name", "shot", "--memory", "20Mi", "--", "sh", "-c", "kill -KILL $$")
    assert "memory limit" not in output


def test_a_refused_minimum_leaves_nothing_behind(stack: Session) -> None:
    stack.fails(125, "run", "--name", "huge", "--min-cpu", "64", "--", "true")
    stack.fails(6, "get", "workloads", "huge")
    assert not cgroup("cpu", f"{stack.top}/standard/default_huge").exists()


def test_a_minimum_is_a_reservation_for_the_one_command(stack: Session) -> None:
    child = stack.running("kept", "--min-cpu", "300m")
    status = stack.json("get", "workloads", "kept")["status"]
    assert status["floor"] == {"cpu": "300m"}
    stack.fails(125, "run", "--min-cpu", f"{os.cpu_count() * 1000 - 200}m", "--", "true")
    child.terminate()
    assert child.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert "kept" not in stack.json("status")["promised"]


def keeps_memory(stack: Session) -> bool:
    """Whether this machine has memory floors."""
    return next(row["ok"] for row in stack.json("doctor")["capabilities"] if row["feature"] == "memory.min")


def test_a_minimum_that_no_kernel_feature_upholds_does_not_start(stack: Session) -> None:
    wanted = ("run", "--name", "kept-pages", "--min-memory", "16Mi")
    if keeps_memory(stack):
        assert stack.says(*wanted, "--", "echo", "started") == "started\n"
        return
    ended = stack(*wanted, "--", "echo", "started", code=125)
    assert ended.stdout == ""
    assert "default/kept-pages is not started: memory.min is not enforceable here: needs " in ended.stderr
    stack.fails(6, "get", "workloads", "kept-pages")
    ended = stack(*wanted, "--best-effort-minimum", "--", "echo", "started")
    assert ended.stdout == "started\n"
    assert "minimum not upheld: memory.min is not enforceable here" in ended.stderr


def test_a_minimum_that_a_disarmed_agent_would_not_uphold_does_not_start(stack: Session) -> None:
    stack("disarm")
    try:
        output = stack.fails(125, "run", "--min-cpu", "100m", "--", "echo", "started")
        assert "is not started: the agent is read-only (not armed), so nothing upholds it" in output
        assert stack.says("run", "--min-cpu", "100m", "--best-effort-minimum", "--", "echo", "started") == "started\n"
    finally:
        stack("arm")


def test_a_floor_of_a_policy_starts_and_is_shown_as_what_it_is_worth(stack: Session) -> None:
    policy = stack.folder / "kept.json"
    spec = {"selector": {"matchLabels": {"kept": "pages"}}, "minimum": {"memory": "16Mi"}}
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}
    policy.write_text(json.dumps({**kind, "metadata": {"name": "kept", "namespace": "default"}, "spec": spec}))
    stack("apply", "-f", str(policy))
    stack.running("of-policy", "--label", "kept=pages")
    enforced = keeps_memory(stack)
    assert eventually(
        lambda: (
            [bool(e.get("reason")) for e in stack.json("get", "workloads", "of-policy")["status"].get("effective", ())]
            == [not enforced]
        )
    )


def test_a_name_is_taken_until_its_command_ends(stack: Session) -> None:
    child = stack.running("twin")
    assert "default/twin exists already" in stack.fails(125, "run", "--name", "twin", "--", "true")
    child.terminate()
    child.wait(PATIENCE_S)
    assert not cgroup("cpu", f"{stack.top}/standard/default_twin").exists()
    stack("run", "--name", "twin", "--", "true")


CATCH = """
import signal, sys
count = 0
def caught(*_):
    global count
    count += 1
    print(f"caught {count}", flush=True)
signal.signal(signal.SIGINT, caught)
print("ready", sys.stdin.isatty(), flush=True)
for line in sys.stdin:
    print("got", line, end="", flush=True)
sys.exit(count)
"""


def test_the_terminal_is_the_command_s_and_ctrl_c_reaches_it_once(stack: Session) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        words = stack.command("run", "--quiet", "--", sys.executable, "-S", "-u", "-c", CATCH)
        os.execve(words[0], words, stack.environ)
    seen = Reader(terminal)
    assert seen.wait("ready True")
    os.write(terminal, b"\x03")
    assert seen.wait("caught 1")
    os.write(terminal, b"hello\n")
    assert seen.wait("got hello")
    os.write(terminal, b"\x04")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 1, "the handler ran once"
    os.close(terminal)


class Reader:
    """What a terminal showed so far."""

    def __init__(self, fd: int) -> None:
        self.text = ""
        self.fd = fd
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self) -> None:
        while True:
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                return

    def wait(self, text: str) -> bool:
        return eventually(lambda: text in self.text)


def test_alone_it_brings_an_agent_that_ends_with_the_last_command(cli: Session) -> None:
    first = cli.running("one", "--profile", "ls")
    agent = cli.agent_pid()
    second = cli.running("two", "--profile", "be")
    assert cli.agent_pid() == agent, "a later run joins it"
    first.terminate()
    first.wait(PATIENCE_S)
    assert [w["metadata"]["name"] for w in cli.json("get", "workloads")["items"]] == ["two"]
    second.terminate()
    second.wait(PATIENCE_S)
    assert eventually(lambda: cli.agent_pid() == 0)
    assert eventually(lambda: not cgroup("cpu", cli.top).exists())


def test_many_at_once_share_one_agent(cli: Session) -> None:
    children = [cli.start("run", "--name", f"w{n}", "--", "sleep", "1000") for n in range(4)]
    assert eventually(lambda: all(" in " in cli.output(c) for c in children)), [cli.output(c) for c in children]
    names = [w["metadata"]["name"] for w in cli.json("get", "workloads")["items"]]
    assert names == ["w0", "w1", "w2", "w3"]


def test_a_later_up_takes_over_and_drops_no_setting_on_the_way(cli: Session) -> None:
    cli.running("web", "--profile", "ls", "--min-cpu", "200m", "--cpu", "1")
    folder = cgroup("cpu", cli.json("get", "workloads", "web")["status"]["cgroup"])
    limit, weight = (next(f for f in folder.iterdir() if f.name in names) for names in (LIMIT, WEIGHT))
    first, before, seen = cli.agent_pid(), limit.read_text(), set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add((limit.read_text(), weight.read_text() in BY_DEFAULT))
            time.sleep(0.001)

    looking = threading.Thread(target=look)
    looking.start()
    cli.up()
    done.set()
    looking.join()
    assert cli.agent_pid() not in (0, first)
    assert seen == {(before, False)}
    assert [w["metadata"]["name"] for w in cli.json("get", "workloads")["items"]] == ["web"]
