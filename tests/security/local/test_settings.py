"""What users of the same machine try with holds: to get what no profile gives them, and to set what is not theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.dialects import dialect
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.socket.admission import AdmitRequest, Caller
from j10ce.errors import Denied, Invalid
from tests.agent.ring.test_runner import ROOT_USER, Scene, running

UID = 4_000_000_000  # beyond what anyone gives to a user
USER = Caller(1, UID, UID)
MINE = HoldRequest(target="workload/default/mine", knobs=("cpu.max",), for_seconds=60, why="test")
ROOTS = replace(MINE, target="workload/default/roots")
ONLY = "only root, or the user that the agent runs as, may"


async def denied(scene: Scene, asked: HoldRequest) -> str:
    await scene.operations.admit(AdmitRequest(name="mine"), USER)
    await scene.place("roots")
    with pytest.raises(Denied, match=ONLY) as refused:
        await scene.operations.hold(asked, USER)
    assert scene.operations.holds() == ()
    return str(refused.value).removeprefix(f"{ONLY} ").removesuffix(f"; this is uid {UID}")


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("sched.realtime", "100000"),
        ("cpu.rt_runtime_us", "900000"),
        ("cpu.weight", "262144"),
        ("cpu.bvt_warp_ns", "2"),
        ("cpuset.cpus", "0-3"),
        ("memory.min", "4Gi"),
        ("oom.score_adj", "-1000"),
        ("memory.priority", "12"),
        ("sched.cookie", "of-another"),
        ("resctrl.group", "of-another"),
        ("net.egress.floor[eth0]", "1Gbit"),
        ("net.egress.priority", "0"),
        ("io.weight", "10000"),
        ("io.latency[8:0]", "1"),
        ("cgroup.freeze", "1"),
    ],
)
async def test_a_hold_gives_a_user_s_workload_nothing_that_others_would_pay_for(
    tmp_path: Path, knob: str, value: str
) -> None:
    async with running(tmp_path) as scene:
        what = await denied(scene, replace(MINE, knobs=(knob,), value=value))
        assert what == f"hold a value of {knob.partition('[')[0]}, which is no limit"


@pytest.mark.parametrize(
    ("target", "knob", "value"),
    [
        ("node", "vm.min_free_kbytes", "10485760"),
        ("node", "sched.features[RT_RUNTIME_SHARE]", "1"),
        ("group/j10ce", "cpu.weight", "2"),
        ("resctrl/roots", "resctrl.mb[0]", "10"),
    ],
)
async def test_what_is_everybody_s_is_held_by_root_alone(tmp_path: Path, target: str, knob: str, value: str) -> None:
    async with running(tmp_path) as scene:
        what = await denied(scene, replace(MINE, target=target, knobs=(knob,), value=value))
        assert what == f"hold {target}, which is everybody's"


@pytest.mark.parametrize("target", ["workload/default/roots", "part/default/roots/app", "workload/default/none-yet"])
@pytest.mark.parametrize(("knob", "value"), [("cpu.max", "1000"), ("memory.max", "1Mi"), ("cgroup.freeze", "1")])
async def test_a_user_sets_nothing_of_a_workload_that_he_did_not_place(
    tmp_path: Path, target: str, knob: str, value: str
) -> None:
    async with running(tmp_path) as scene:
        what = await denied(scene, replace(MINE, target=target, knobs=(knob,), value=value))
        assert what == f"hold a value of {target}, which uid {UID} did not place"


async def test_a_user_breaks_no_reservation(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        assert await denied(scene, replace(ROOTS, breaks_reservation=True)) == "break a reservation"


async def test_a_user_limits_his_own_workload_and_root_sets_what_root_likes(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.operations.admit(AdmitRequest(name="mine"), USER)
        await scene.place("roots")
        await scene.operations.hold(replace(MINE, value="50000"), USER)
        await scene.operations.hold(replace(ROOTS, knobs=("cpu.weight",), value="2048"), ROOT_USER)
        await scene.operations.hold(ROOTS, USER)  # as it is, whose ever it is
        assert len(scene.operations.holds()) == 3


async def test_a_hold_means_few_settings_however_many_disks_or_links_it_names(tmp_path: Path) -> None:
    """Each is looked at on every tick, whether there is such a disk or not."""
    disks = tuple(f"io.max[8:{n}]" for n in range(17))
    links = tuple(f"net.egress.ceil[eth{n}]" for n in range(65))
    async with running(tmp_path) as scene:
        for names, count in ((disks, 68), (links, 65)):
            with pytest.raises(Invalid, match=f"{count} settings; at most 64"):
                await scene.operations.hold(replace(MINE, knobs=names), USER)
        assert scene.operations.holds() == ()


@pytest.mark.parametrize(
    ("labels", "annotations", "refused"),
    [
        ({"koordinator.sh/qosClass": "LSE"}, {}, "may not have profile 'lse'"),
        ({"koordinator.sh/qosClass": "LSR"}, {}, "may not have profile 'lsr'"),
        ({}, {"koordinator.sh/memoryQOS": '{"policy":"auto","priority":12}'}, "kernelPriority 12: namespace"),
        ({}, {"koordinator.sh/memoryQOS": '{"policy":"auto","wmarkMinAdj":-25}'}, "watermarkAdjust -25: namespace"),
        ({}, {"kubernetes.io/egress-bandwidth": "9" * 60}, "is not a quantity"),
    ],
)
async def test_words_of_other_systems_give_a_user_nothing_that_ours_do_not(
    tmp_path: Path, labels: dict[str, str], annotations: dict[str, str], refused: str
) -> None:
    async with running(tmp_path) as scene:
        scene.shell.translate = dialect(["koordinator"])
        asked = AdmitRequest(name="mine", namespace="j10ce-system", labels=labels, annotations=annotations)
        answer = await scene.operations.admit(asked, USER)
        assert answer["tier"] in ("standard", "sensitive")
        assert not any(answer["entitlement"]["floor"])
        assert refused in " ".join(answer["notes"])
