"""What an operator sees and orders: the truth about pressure, and about holds whose value is not in force."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.ring.holds import HoldRequest, without
from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.answers import top
from j10ce.cli.look.top import listing
from j10ce.errors import Denied
from j10ce.kernel.record.drift import Drift
from j10ce.model.knob import Setting, Support, TargetId, read_names
from j10ce.model.machine.disk import Disk
from j10ce.model.machine.link import Link
from j10ce.model.snapshot import NodeFacts
from j10ce.observe.series import SeriesBook
from j10ce.policy.document.document import NodeDocument
from j10ce.testing import build
from tests.agent.ring.test_runner import ROOT_USER, running
from tests.agent.whole_ring import Ring


async def test_a_knob_that_this_machine_cannot_enforce_is_not_held(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        report = scene.operations.report
        lacking = {**report.snap.support, "memory.low": Support(False, needs="cgroup v2")}
        asked = HoldRequest(target="workload/default/web", knobs=("cpu.max", "memory.low"), for_seconds=60, why="test")
        scene.operations.shell.report = replace(report, snap=replace(report.snap, support=lacking))
        with pytest.raises(Denied, match=r"memory\.low is not enforceable here: needs cgroup v2"):
            await scene.operations.hold(asked, ROOT_USER)
        assert scene.operations.holds() == ()


WEB = TargetId("workload/default/web")


def frozen(knob: str, value: str, *, target: str = WEB) -> HoldRequest:
    return HoldRequest(target=target, knobs=(knob,), for_seconds=60, why="test", value=value)


def with_devices(node: NodeFacts) -> NodeFacts:
    return replace(node, disks={"8:0": Disk("8:0", name="sda")}, links={"eth0": Link("eth0")})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("net.egress.ceil[etho]", "net.egress.ceil[etho] waits for a link etho; here are eth0"),
        ("io.max[sda].rbps", "io.max[sda].rbps waits for a disk of that number; sda is io.max[8:0].rbps"),
        ("io.max[9:9]", "io.max[9:9] waits for a disk 9:9; here are 8:0 (sda)"),
    ],
)
async def test_who_names_a_link_or_disk_that_is_not_there_hears_what_is(tmp_path: Path, name: str, said: str) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        report = scene.operations.report
        known = {k: Support(True, via="test") for k, _ in read_names(name)}
        snap = replace(report.snap, support=known, node=with_devices(report.snap.node))
        scene.operations.shell.report = replace(report, snap=snap)
        asked = HoldRequest(target=WEB, knobs=(name,), for_seconds=60, why="test")
        assert (await scene.operations.hold(asked, ROOT_USER))["notes"] == [said]
        explained = await scene.operations.explain(WEB, name)
        assert explained["text"].splitlines()[-1] == f"  absent      {said}"


@pytest.mark.parametrize("name", ["io.max[8:0]", "io.max[8:0].rbps", "net.egress.ceil[eth0]"])
async def test_a_knob_of_one_disk_or_link_is_held_where_the_machine_has_it(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        report = scene.operations.report
        known = {k: Support(True, via="test") for k, _ in read_names(name)}
        snap = replace(report.snap, support=known, node=with_devices(report.snap.node))
        scene.operations.shell.report = replace(report, snap=snap)
        asked = HoldRequest(target=WEB, knobs=(name,), for_seconds=60, why="test")
        assert (await scene.operations.hold(asked, ROOT_USER))["notes"] == []
        (held,) = scene.operations.holds()
        assert held.spec.knobs == (name,)


@pytest.mark.parametrize(
    ("held", "asked", "free"),
    [
        pytest.param("io.max[8:0]", "io.max[8:0].rbps", False, id="one of the four"),
        pytest.param("net.egress.ceil", "net.egress.ceil[eth0]", False, id="one of all links"),
        pytest.param("net.egress.ceil[eth1]", "net.egress.ceil[eth0]", True, id="another link"),
        pytest.param("io.max[8:0].wbps", "io.max[8:0].rbps", True, id="another of the four"),
    ],
)
async def test_what_somebody_else_holds_is_theirs_however_it_is_spelled(
    tmp_path: Path, held: str, asked: str, free: bool
) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        report = scene.operations.report
        known = {k: Support(True, via="test") for name in (held, asked) for k, _ in read_names(name)}
        scene.operations.shell.report = replace(report, snap=replace(report.snap, support=known))
        first, second = (HoldRequest(target=WEB, knobs=(k,), for_seconds=60, why="test") for k in (held, asked))
        await scene.operations.hold(first, ROOT_USER)
        with nullcontext() if free else pytest.raises(Denied, match="is held already, by"):
            await scene.operations.hold(second, Caller(1, 12345, 12345))
        assert len(scene.operations.holds()) == 1 + free


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        pytest.param("io.max", ("net.egress.ceil",), id="of every disk"),
        pytest.param("io.max[8:0]", ("io.max[8:16].rbps", "net.egress.ceil"), id="of one disk"),
        pytest.param("io.max[8:0].rbps", ("io.max[8:0]", "io.max[8:16].rbps", "net.egress.ceil"), id="no part of it"),
        pytest.param("net.egress.ceil[eth0]", ("io.max[8:0]", "io.max[8:16].rbps", "net.egress.ceil"), id="nor one of"),
        pytest.param("net.egress.ceil", ("io.max[8:0]", "io.max[8:16].rbps"), id="of all links"),
    ],
)
def test_whoever_releases_a_knob_releases_it_of_every_disk_and_link(asked: str, kept: tuple[str, ...]) -> None:
    every = ("io.max[8:0]", "io.max[8:16].rbps", "net.egress.ceil")
    made = build.hold(WEB, "cpu.max")
    held = replace(made, spec=replace(made.spec, knobs=every))
    stay, released = without([held], WEB, frozenset({asked}))
    assert [name for hold in stay for name in hold.spec.knobs] == list(kept)
    assert sorted((*released, *kept)) == sorted(every)


async def test_cpus_that_the_machine_lacks_are_not_held(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        with pytest.raises(Denied, match=r"CPU 99-100 is not there; cgroups of this machine may run on 0-\d+$"):
            await scene.operations.hold(frozen("cpuset.cpus", "0,99-100"), ROOT_USER)
        assert scene.operations.holds() == ()


async def test_a_hold_answers_once_its_value_is_in_force(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        assert (await scene.operations.hold(frozen("cpu.max", "50000"), ROOT_USER))["notes"] == []
        assert scene.ring.value(WEB, "cpu.max") == 50_000.0


async def test_a_hold_that_the_disk_did_not_take_says_that_a_restart_ends_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        scene.operations.cache._holds.with_suffix(".draft").mkdir(parents=True)
        (note,) = (await scene.operations.hold(frozen("cpu.max", "50000"), ROOT_USER))["notes"]
        assert note.startswith("in force, but not on disk: it ends when the agent restarts (")
        assert scene.ring.value(WEB, "cpu.max") == 50_000.0


@pytest.mark.parametrize(
    ("yielded", "then"), [(False, "put back 2 times in ten minutes"), (True, "left at theirs after 2 times")]
)
async def test_explain_says_who_changed_a_setting_from_what_to_what_and_how_often(
    tmp_path: Path, yielded: bool, then: str
) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        report = scene.operations.report
        drift = Drift(Setting(WEB, "cpu.weight"), 9024.0, 77.0, report.at.now - 7, 2, yielded)
        scene.operations.shell.report = replace(report, drifts=(drift,))
        says = f"cpu.weight: someone else changed 9024 to 77, 7 s ago; {then}"
        assert f"  note        {says}\n" in (await scene.operations.explain(WEB, None))["text"]
        assert f"  note        {says}\n" in (await scene.operations.explain(WEB, "cpu.weight"))["text"] + "\n"
        assert says not in (await scene.operations.explain(WEB, "cpu.max"))["text"]


async def test_a_hold_of_a_disarmed_agent_says_that_nothing_is_written(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        await scene.operations.disarm(revert=False)
        (note,) = (await scene.operations.hold(frozen("cpu.weight", "500"), ROOT_USER))["notes"]
        way = "`j10ce-qos arm`, by root or the agent's own user, lets it write again"
        assert note.endswith(f", not 500: the agent is disarmed; {way}")
        assert "nothing was written: the agent is disarmed; `j10ce-qos arm`" in (await scene.place("db"))["notes"][-1]
        assert scene.operations.status()["lastPlan"].endswith(" not written: the agent is read-only (not armed)")


async def test_a_hold_on_what_is_not_chosen_says_so(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.place("web")
        scene.ring.agent.obey(NodeDocument(node="here"))
        (note,) = (await scene.operations.hold(frozen("cpu.weight", "500"), ROOT_USER))["notes"]
        assert note.endswith(", not 500: no policy chose this workload, it is only classified")


async def test_a_hold_that_waits_for_its_target_has_no_value_to_tell_of(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        later = frozen("cpu.weight", "500", target="workload/default/later")
        assert (await scene.operations.hold(later, ROOT_USER))["notes"] == []


@pytest.mark.parametrize(
    ("age", "shown"), [pytest.param(2.0, 0.8, id="just read"), pytest.param(9.0, 0.8, id="read nine samples ago")]
)
def test_a_starved_workload_shows_its_last_known_pressure(tmp_path: Path, age: float, shown: float) -> None:
    ring = Ring(tmp_path)
    db = build.workload("db", profile="ls")
    report = ring.arrive(db)
    book = SeriesBook()
    book.add(report.at.now - age, db.target, "cpu.pressure", 0.8)
    listed = top(replace(report, snap=replace(report.snap, readings=book.at(report.at.now))))
    assert listed["workloads"][0]["pressure"] == shown


def test_pressure_that_nobody_has_read_yet_is_unknown(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    shown = top(ring.arrive(build.workload("db", profile="ls")))
    assert shown["workloads"][0]["pressure"] is None
    assert listing(shown, wide=False).splitlines()[-1].split()[-2:] == ["-", "0%"]
