"""The whole product where systemd is the init: real commands, real units, and the agent as `run` and as a service."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.cli.client import Client
from tests.cli.session import PATIENCE_S, Session, eventually
from tests.systemd.units import AS_USER, ENV, UID, cgroup_files, shown, systemctl

MIB = 1 << 20
SCOPE = "j10ce.slice/j10ce-sensitive.slice/j10ce-default-web.scope"
PROMISE = ("--profile", "ls", "--min-cpu", "300m", "--min-memory", "32Mi")


class Product(Session):
    """The command with the default top; nothing of it may be left after a test."""

    def __init__(self, folder: Path, clone: Path) -> None:
        super().__init__(folder, "j10ce", clone)

    def clean(self) -> None:
        super().clean()
        left = systemctl("list-units", "--all", "--plain", "--no-legend", "j10ce*")
        for unit in re.findall(r"^(j10ce\S+)", left, re.MULTILINE):
            systemctl("stop", unit)
        assert not left, "a test leaves no unit behind"


@pytest.fixture
def cli(tmp_path: Path, clone: Path) -> Iterator[Product]:
    one = Product(tmp_path, clone)
    yield one
    log = one.run_dir / "agent.log"
    print(log.read_text()[-3000:] if log.exists() else "no agent")
    one.clean()


@pytest.fixture
def victim() -> Iterator[str]:
    """A service that was there before us."""
    subprocess.run(["systemd-run", "--quiet", "--unit=victim", "--property=CPUWeight=77", "sleep", "1000"], check=True)
    yield "victim.service"
    systemctl("stop", "victim.service")


def unit(name: str, *properties: str) -> dict[str, str]:
    lines = systemctl("show", name, *(f"--property={p}" for p in properties)).splitlines()
    return dict(line.split("=", 1) for line in lines)


def all_drop_ins() -> list[str]:
    """Of units that are not ours."""
    return sorted(str(f) for f in Path("/run/systemd").glob("*/*.d/50-*.conf") if not f.parent.name.startswith("j10ce"))


def above() -> dict[str, str]:
    return unit("system.slice", "CPUWeight", "MemoryMin", "MemoryLow", "DropInPaths")


def cgroup_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::/")


def no_unit_is_left() -> bool:
    return not systemctl("list-units", "--all", "--plain", "--no-legend", "j10ce*").strip()


def test_a_command_runs_in_a_scope_whose_values_are_unit_properties(cli: Product) -> None:
    child = cli.start("run", "--name", "web", *PROMISE, "--", "sh", "-c", "sleep 1000; exit 7")
    assert eventually(lambda: f"default/web in {SCOPE}" in cli.output(child)), cli.output(child)
    properties = unit("j10ce-default-web.scope", "Slice", "ControlGroup", "MemoryMin")
    assert properties == {
        "Slice": "j10ce-sensitive.slice",
        "ControlGroup": f"/{SCOPE}",
        "MemoryMin": str(32 * MIB),
    }
    for path in ("j10ce.slice", "j10ce-sensitive.slice"):
        assert int(unit(path, "MemoryMin")["MemoryMin"]) >= 32 * MIB
    files = ("cpu.weight", "cpu.max", "memory.min", "memory.low")
    before = [cgroup_files(path, *files) for path in (SCOPE, os.path.dirname(SCOPE), "j10ce.slice")]
    systemctl("daemon-reload")
    assert [cgroup_files(path, *files) for path in (SCOPE, os.path.dirname(SCOPE), "j10ce.slice")] == before
    assert eventually(lambda: "the floor holds" in cli.says("explain", "web"))
    own = cgroup_of(cli.agent_pid())
    assert re.fullmatch(r"system\.slice/j10ce-qos-run-\d+\.service", own), "it may outlive the caller's unit"
    os.kill(int(cgroup_files(SCOPE, "cgroup.procs")["cgroup.procs"].split()[-1]), signal.SIGTERM)
    assert child.wait(PATIENCE_S) == 7
    assert eventually(no_unit_is_left), systemctl("list-units", "--all", "j10ce*")
    assert cli.agent_pid() == 0


def test_the_agent_outlives_the_unit_that_started_it(cli: Product) -> None:
    passed = [f"--setenv={k}={v}" for k, v in cli.environ.items() if k.startswith(("J10CE", "PYTHON"))]
    starter = ["systemd-run", "--quiet", "--collect", "--unit=starter", *passed]
    subprocess.run([*starter, *cli.command("run", "--name", "web", *PROMISE, "--", "sleep", "1000")], check=True)
    assert eventually(lambda: Path("/sys/fs/cgroup", SCOPE).exists())
    held = cgroup_files(SCOPE, "cpu.weight", "memory.min")
    agent = cli.agent_pid()
    systemctl("kill", "--signal=SIGKILL", "starter.service")
    assert eventually(lambda: unit("starter.service", "ActiveState")["ActiveState"] == "inactive")
    assert cli.agent_pid() == agent
    assert cli.json("status")["workloads"] == 1
    assert cgroup_files(SCOPE, "cpu.weight", "memory.min") == held
    Path("/sys/fs/cgroup", SCOPE, "cgroup.kill").write_text("1")
    assert eventually(no_unit_is_left), systemctl("list-units", "--all", "j10ce*")


def test_an_adopted_service_is_given_back_to_the_letter(cli: Product, victim: str) -> None:
    before, files = (shown(victim), above()), all_drop_ins()
    output = cli.says("adopt", "--unit", victim, "--name", "victim", "--profile", "ls", "--min-memory", "16Mi")
    assert output == "default/victim adopted in system.slice/victim.service\n"
    assert unit(victim, "MemoryMin") == {"MemoryMin": str(16 * MIB)}
    assert int(unit("system.slice", "MemoryMin")["MemoryMin"]) >= 16 * MIB
    cli("forget", "victim")
    assert (shown(victim), above()) == before
    assert all_drop_ins() == files
    pid = unit(victim, "MainPID")["MainPID"]
    cli("adopt", "--pid", pid, "--name", "victim", "--profile", "be")
    assert unit(victim, "CPUWeight") == {"CPUWeight": "idle"}
    assert cgroup_of(int(pid)) == f"system.slice/{victim}", "a service's process stays in its service"
    assert ", 0 left alone" in cli.says("revert")
    assert (shown(victim), above()) == before
    assert all_drop_ins() == files
    cli("forget", "victim")
    assert eventually(lambda: cli.agent_pid() == 0)


@pytest.fixture
def restarting() -> Iterator[str]:
    """A service that systemd starts again whenever it ends."""
    name = "restarting.service"
    file = Path("/run/systemd/system", name)
    file.write_text("[Service]\nExecStart=/bin/sleep 1000\nRestart=always\nRestartSec=300ms\nStartLimitIntervalSec=0\n")
    systemctl("daemon-reload")
    systemctl("start", name)
    yield name
    systemctl("stop", name)
    file.unlink()
    systemctl("daemon-reload")


def test_an_adopted_service_keeps_its_floor_over_crashes_restarts_and_a_stop(cli: Product, restarting: str) -> None:
    cli("adopt", "--unit", restarting, "--name", "kept", "--profile", "ls", "--min-memory", "16Mi")

    def protected() -> bool:
        return cgroup_files(f"system.slice/{restarting}", "memory.min") == {"memory.min": str(16 * MIB)}

    def main() -> int:
        return int(unit(restarting, "MainPID")["MainPID"])

    for end in ("kill", "kill", "restart", "restart"):
        before = main()
        systemctl(*(("kill", "--signal=SIGKILL", restarting) if end == "kill" else ("restart", restarting)))
        assert eventually(lambda before=before: main() not in (0, before))
        assert eventually(protected), end
    systemctl("stop", restarting)
    later = runs(cli) + 8  # more sweeps than it takes to look at everyone
    assert eventually(lambda: runs(cli) >= later)
    assert cli.json("get", "workloads", "kept")["status"].get("phase", "Pending") == "Pending"
    systemctl("start", restarting)
    assert eventually(protected)
    cli("forget", "kept")
    assert eventually(lambda: unit(restarting, "MemoryMin") == {"MemoryMin": "0"})
    assert eventually(lambda: cli.agent_pid() == 0)


def runs(cli: Product) -> float:
    """How often the whole ring has run."""
    lines = Client(f"unix:{cli.run_dir / 'agent.sock'}").get("/metrics").splitlines()
    return next(float(x.split()[1]) for x in lines if x.startswith('j10ce_ring_runs_total{cause="tick"}'))


@pytest.fixture(scope="class")
def agent(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Product]:
    one = Product(tmp_path_factory.mktemp("agent"), clone)
    keeper = one.running("keeper")
    yield one
    keeper.terminate()
    keeper.wait(PATIENCE_S)
    assert eventually(no_unit_is_left)
    one.clean()


class TestBesideOneAgent:
    @pytest.mark.parametrize(
        ("what", "says"),
        [
            pytest.param(("--pid", "1"), "process 1 is never managed", id="process 1"),
            pytest.param(("--unit", "init.scope"), "init.scope is never adopted", id="its unit"),
            pytest.param(("--cgroup", "init.scope"), "init.scope is never touched", id="its cgroup"),
            pytest.param(("--unit", "-.slice"), "-.slice is never adopted", id="the root"),
            pytest.param(("--unit", "absent"), "absent.service is not running", id="a unit that is not there"),
        ],
    )
    def test_what_is_never_adopted(self, agent: Product, what: tuple[str, str], says: str) -> None:
        assert says in agent("adopt", *what, code=None).stderr

    def test_arrivals_are_timed(self, agent: Product) -> None:
        """Printed, not judged: a guest is many times slower than a machine."""
        client, kids, times = Client(f"unix:{agent.run_dir / 'agent.sock'}"), [], []
        for n in range(8):
            kids.append(subprocess.Popen(["sleep", "1000"]))
            request = {
                "name": f"w{n}",
                "pid": kids[-1].pid,
                "profile": "ls",
                "minimum": {"cpu": "50m", "memory": "8Mi"},
            }
            begun = time.monotonic()
            where = client.post("/v1/workloads", request)["cgroup"]
            times.append(time.monotonic() - begun)
            assert cgroup_files(where, "memory.min") == {"memory.min": str(8 * MIB)}
        print(f"arrival, all knobs written through systemd: {', '.join(f'{t * 1000:.0f}' for t in times)} ms")
        for kid in kids:
            kid.kill()
            kid.wait()
        assert eventually(lambda: len(client.get("/v1/workloads")["items"]) == 1)


def test_ctrl_c_of_up_gives_everything_back(cli: Product, victim: str) -> None:
    before, files = shown(victim), all_drop_ins()
    up = cli.up()
    cli("adopt", "--unit", victim, "--name", "victim", "--profile", "ls", "--min-memory", "16Mi")
    child = cli.running("web", *PROMISE)
    assert shown(victim) != before
    child.terminate()
    child.wait(PATIENCE_S)
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0, cli.output(up)
    assert shown(victim) == before
    assert all_drop_ins() == files
    assert no_unit_is_left()


@pytest.fixture
def service(clone: Path) -> Iterator[str]:
    """The unit file of deploy/, with this clone's interpreter."""
    name, folder = "j10ce-qos-agent.service", Path("/run/systemd/system")
    shutil.copy(clone / "deploy/systemd" / name, folder)
    conf = folder / f"{name}.d" / "lab.conf"
    conf.parent.mkdir()
    command = f"{clone}/.venv/bin/python -m j10ce.agent.main"
    paths = f"Environment=PYTHONPATH={clone}/src\nTimeoutStartSec=120\nWatchdogSec=120"
    paths += "\nPrivateTmp=no"  # the clone may lie below /tmp
    conf.write_text(f"[Service]\nExecStart=\nExecStart={command}\n{paths}\n")
    systemctl("daemon-reload")
    yield name
    systemctl("stop", name)
    shutil.rmtree(conf.parent)
    (folder / name).unlink()
    systemctl("daemon-reload")


def test_the_agent_as_a_service_tells_when_it_is_ready_and_keeps_settings_over_a_restart(
    cli: Product, service: str
) -> None:
    for name in ("J10CE_RUN_DIR", "J10CE_STATE_DIR", "J10CE_CONFIG_DIR"):
        del cli.environ[name]
    cli.run_dir = Path("/run/j10ce-qos")
    systemctl("start", service)
    assert unit(service, "ActiveState", "Type") == {"ActiveState": "active", "Type": "notify"}
    child = cli.running("web", *PROMISE)
    held = cgroup_files(SCOPE, "cpu.weight", "memory.min")
    assert held["memory.min"] == str(32 * MIB)
    first = cli.agent_pid()
    systemctl("restart", service)
    assert cli.agent_pid() not in (0, first)
    assert cgroup_files(SCOPE, "cpu.weight", "memory.min") == held
    assert [w["metadata"]["name"] for w in cli.json("get", "workloads")["items"]] == ["web"]
    child.terminate()
    child.wait(PATIENCE_S)
    assert ", 0 left alone" in cli.says("revert")
    cli("arm")


def as_user(clone: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [*AS_USER, sys.executable, "-m", "j10ce.cli.main", *words]
    env = {**env, "PYTHONPATH": str(clone / "src")}
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.fixture
def protected_users() -> Iterator[None]:
    """Root keeps some memory for users; without it nothing of theirs can be kept."""
    above = ("user.slice", f"user-{UID}.slice", f"user@{UID}.service")
    for name in above:
        systemctl("set-property", "--runtime", name, f"MemoryMin={64 * MIB}", f"MemoryLow={64 * MIB}")
    yield
    for name in above:
        systemctl("set-property", "--runtime", name, "MemoryMin=0", "MemoryLow=0")


@pytest.mark.usefixtures("user", "protected_users")
def test_a_user_runs_a_command_in_what_was_delegated(clone: Path, home: Path) -> None:
    show = ("sh", "-c", "cat /proc/self/cgroup; cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.min")
    ended = as_user(clone, {**ENV, "HOME": str(home)}, "run", "--name", "web", *PROMISE, "--", *show)
    print(ended.stderr)
    assert ended.returncode == 0
    root = f"user.slice/user-{UID}.slice/user@{UID}.service"
    assert ended.stdout == f"0::/{root}/{SCOPE}\n{32 * MIB}\n"
    assert eventually(lambda: not Path("/sys/fs/cgroup", root, "j10ce.slice").exists())


@pytest.mark.usefixtures("user")
def test_a_user_for_whom_root_keeps_no_memory_is_promised_none(clone: Path, home: Path) -> None:
    env = {**ENV, "HOME": str(home)}
    ended = as_user(clone, env, "run", "--name", "web", *PROMISE, "--", "echo", "started")
    assert (ended.returncode, ended.stdout) == (125, ""), ended.stderr
    assert "needs memory.min of user.slice, which root alone can set" in ended.stderr
    started = as_user(clone, env, "run", "--name", "web", "--min-cpu", "300m", "--", "echo", "started")
    assert (started.returncode, started.stdout) == (0, "started\n"), started.stderr


@pytest.mark.usefixtures("anyone")
def test_a_user_without_a_manager_hears_in_one_line_that_nothing_is_written(clone: Path, home: Path) -> None:
    env = {"PATH": ENV["PATH"], "HOME": str(home)}
    ended = as_user(clone, env, "run", "--name", "web", "--", "echo", "ran")
    assert (ended.returncode, ended.stdout) == (0, "ran\n"), ended.stderr
    (said,) = (line for line in ended.stderr.splitlines() if "is not ready yet" not in line)  # as a slow machine hears
    assert "not armed" in said


@pytest.fixture
def home() -> Path:
    """The user's own."""
    folder = Path(f"/var/tmp/home-{UID}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chown(folder, UID, UID)
    return folder
