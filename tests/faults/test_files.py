"""What the agent keeps on disk is damaged, lost, full, or of another boot: it says so, and leaves the node safe."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from j10ce.agent.cache import Cache
from j10ce.daemon.clock import SystemClock
from j10ce.errors import Denied
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.record.entry import FORMAT, Header, to_line
from j10ce.policy.document.document import FORMAT as DOCUMENT_FORMAT
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.process import START_S, AgentProcess, cgroup, eventually, one_agent

pytestmark = pytest.mark.host
KNOBS = ("cpu.shares", "cpu.weight", "cpu.idle", "cpu.cfs_quota_us", "cpu.max")


class Theirs:
    """A cgroup of someone else with a process in it."""

    def __init__(self, name: str) -> None:
        self.folder = cgroup("cpu", name)
        self.folder.mkdir()

    def fill(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def values(self) -> dict[str, str]:
        return {n: f.read_text() for n in KNOBS if (f := self.folder / n).exists()}

    def made_anew(self, pid: int) -> None:
        """Another cgroup under the same name, with the process in it."""
        (self.folder.parent / "cgroup.procs").write_text(str(pid))
        self.folder.rmdir()
        self.folder.mkdir()
        self.fill(pid)


@pytest.fixture
def theirs(agent: AgentProcess) -> Iterator[Theirs]:
    one = Theirs(f"{agent.top}-theirs")
    one.fill(agent.child())
    yield one
    agent.clean()
    one.folder.rmdir()


def adopt_and_die(agent: AgentProcess, theirs: Theirs) -> dict[str, str]:
    """The values that a killed agent leaves behind."""
    agent.start()
    agent.client.post("/v1/adopt", {"cgroup": theirs.folder.name, "name": "mine", "profile": "be"})
    assert theirs.values()["cpu.idle"] == "1\n"
    agent.stop(signal.SIGKILL)
    return theirs.values()


def garbage_at_the_end(journal: bytes) -> bytes:
    return journal + b"00000000 {garbage}\n"


def garbage_inside(journal: bytes) -> bytes:
    head, *lines = journal.split(b"\n")
    return b"\n".join((head, b"\xff\x00 garbage", *lines))


def a_bit_flipped(journal: bytes) -> bytes:
    """In a line that says what was written last, not what was there before."""
    at = journal.index(b'"type":"wrote"')
    return journal[:at] + b'"type":"wrotf"' + journal[at + len(b'"type":"wrote"') :]


@pytest.mark.parametrize("damage", [garbage_at_the_end, garbage_inside, a_bit_flipped])
def test_a_damaged_journal_is_reported_kept_and_still_serves(
    agent: AgentProcess, theirs: Theirs, damage: Callable[[bytes], bytes]
) -> None:
    before = theirs.values()
    left = adopt_and_die(agent, theirs)
    journal = agent.run_dir / "journal"
    journal.write_bytes(damaged := damage(journal.read_bytes()))
    agent.start()
    assert any("damaged" in w and "journal.damaged-1" in w for w in agent.client.get("/v1/status")["warnings"])
    assert (agent.run_dir / "journal.damaged-1").read_bytes() == damaged
    assert theirs.values() == left
    agent.client.post("/v1/revert", {"force": True})
    assert theirs.values() == before


def test_a_torn_end_is_what_a_kill_leaves_and_no_damage(agent: AgentProcess, theirs: Theirs) -> None:
    before = theirs.values()
    adopt_and_die(agent, theirs)
    journal = agent.run_dir / "journal"
    journal.write_bytes(journal.read_bytes() + b'00000000 {"type":"wro')
    agent.start()
    assert agent.client.get("/v1/status")["warnings"] == []
    assert agent.client.post("/v1/revert", {})["left"] == []
    assert theirs.values() == before


@pytest.mark.parametrize("content", [b"", b"\0" * 4096], ids=["empty", "zeros"])
def test_a_lost_journal_is_reported_and_nothing_is_guessed(agent: AgentProcess, theirs: Theirs, content: bytes) -> None:
    left = adopt_and_die(agent, theirs)
    (agent.run_dir / "journal").write_bytes(content)
    agent.start()
    assert any("damaged" in w for w in agent.client.get("/v1/status")["warnings"])
    agent.client.post("/v1/revert", {})
    assert theirs.values() == left


def test_without_an_agent_revert_refuses_a_damaged_journal_unless_forced(
    agent: AgentProcess, theirs: Theirs, clone: Path
) -> None:
    before = theirs.values()
    left = adopt_and_die(agent, theirs)
    journal = agent.run_dir / "journal"
    journal.write_bytes(garbage_inside(journal.read_bytes()))
    refused = cli(agent, "revert")
    assert refused.returncode != 0
    assert "damaged" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert theirs.values() == left
    cli(agent, "revert", "--force")
    assert theirs.values() == before


def test_without_an_agent_revert_leaves_what_the_control_plane_holds(agent: AgentProcess, theirs: Theirs) -> None:
    before = theirs.values()
    left = adopt_and_die(agent, theirs)
    hold = build.hold("workload/default/mine", "cpu.idle", expires=SystemClock().read().wall + 600)
    document = NodeDocument(
        node=socket.gethostname().lower(), format=DOCUMENT_FORMAT, profiles=builtin(), holds=(hold,)
    )
    Cache(agent.run_dir, agent.state_dir).keep_document(document)
    ended = cli(agent, "revert")
    output = ended.stdout
    assert ended.returncode == 1
    assert f"by {hold.spec.who}: {hold.spec.why}; left as it is (--force overrides)" in output
    assert "release" not in output
    assert theirs.values() == left
    cli(agent, "revert", "--force")
    assert theirs.values() == before


def cli(agent: AgentProcess, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "j10ce.cli.main", *words]
    return subprocess.run(command, env=agent.environ, capture_output=True, text=True, timeout=START_S, check=False)


def test_after_another_boot_nothing_of_the_journal_is_written(agent: AgentProcess, theirs: Theirs) -> None:
    left = adopt_and_die(agent, theirs)
    journal = agent.run_dir / "journal"
    _, rest = journal.read_bytes().split(b"\n", 1)
    journal.write_bytes(to_line(Header(FORMAT, "another-boot")) + rest)
    for file in (agent.run_dir / "workloads").glob("*.json"):
        body = msgspec.json.decode(file.read_bytes())
        file.write_bytes(msgspec.json.encode({**body, "bootId": "another-boot"}))
    agent.start()
    assert agent.client.get("/v1/status")["warnings"] == []
    assert agent.client.get("/v1/workloads")["items"] == []
    assert agent.client.post("/v1/revert", {"force": True})["left"] == []
    assert theirs.values() == left


def test_a_cgroup_that_took_over_the_path_is_someone_elses(agent: AgentProcess, theirs: Theirs) -> None:
    adopt_and_die(agent, theirs)
    theirs.made_anew(agent.kids[0].pid)
    fresh = theirs.values()
    agent.start()
    assert agent.client.get("/v1/workloads")["items"] == []
    agent.client.post("/v1/revert", {"force": True})
    assert theirs.values() == fresh


def test_a_cgroup_that_is_replaced_while_the_agent_runs_is_someone_elses(agent: AgentProcess, theirs: Theirs) -> None:
    agent.start()
    agent.client.post("/v1/adopt", {"cgroup": theirs.folder.name, "name": "mine", "profile": "be"})
    agent.client.post("/v1/disarm", {})  # or it would manage the newcomer before anybody can look
    theirs.made_anew(agent.kids[0].pid)
    fresh = theirs.values()
    agent.client.post("/v1/revert", {"force": True})
    assert theirs.values() == fresh


@pytest.fixture
def cramped(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    """Its files are on a small disk."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "j10ce-test", tmp_path], check=True)
    try:
        with one_agent(tmp_path, clone) as one:
            yield one
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_on_a_full_disk_nothing_is_changed_and_everything_can_be_given_back(cramped: AgentProcess) -> None:
    agent = cramped
    agent.start().place("before", profile="be")
    fill(agent.run_dir.parent / "ballast")
    with pytest.raises(Denied, match="the journal cannot take"):
        place_many(agent)
    agent.client.post(
        "/v1/holds", {"target": "workload/default/before", "knobs": ["cpu.max"], "forSeconds": 9, "why": "x"}
    )
    assert agent.client.get("/healthz") == "ok\n"
    assert agent.client.get("/v1/workloads")["items"]
    (agent.run_dir.parent / "ballast").unlink()
    assert agent.place("after", profile="ls")["armed"]
    for kid in agent.kids:
        kid.kill()
        kid.wait()
    assert agent.stop(signal.SIGINT) == 0
    assert not cgroup("cpu", agent.top).exists()


def place_many(agent: AgentProcess) -> None:
    """What is left of the last page takes a few."""
    for n in range(50):
        agent.place(f"w{n}", profile="ls", minimum={"cpu": "10m"})


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as f, suppress(OSError):
        while f.write(bytes(4096)):
            pass


def test_where_cgroups_are_read_only_it_plans_and_writes_nothing(agent: AgentProcess) -> None:
    agent.run_dir.mkdir(parents=True)
    mounts = [m.path for m in Hierarchies.discover().in_use().values()]
    remount = "".join(f"mount --bind {m} {m} && mount -o remount,bind,ro {m} && " for m in mounts)
    shell = ["unshare", "--mount", "sh", "-c", f'{remount} exec "$@"', "sh"]
    with agent.log.open("ab") as log:
        agent.process = subprocess.Popen(
            [*shell, sys.executable, "-m", "j10ce.agent.main"], env=agent.environ, stdout=log, stderr=log
        )
    assert eventually(lambda: agent.client.get("/v1/status")["armed"] is False, START_S)
    assert "is mounted read-only" in agent.client.get("/v1/status")["unwritable"]
    placed = agent.place("web", profile="ls", minimum={"cpu": "100m"})
    assert any("not armed" in note for note in placed["notes"])
    assert "cpu" in agent.client.get("/v1/explain", target="workload/default/web")["text"]
    with pytest.raises(Denied):
        agent.client.post("/v1/arm", {})
    assert not cgroup("cpu", agent.top).exists()
