"""The common production node: kubelet, containerd and runc with the systemd driver on cgroup v2, and the agent beside.

Every value goes through D-Bus. The kubelet stands alone: the agent asks it for its pods, since no API server answers.
It has MemoryQoS, with which it sets protected memory of its own on the groups above its pods, every minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.model.knob import Setting
from j10ce.testing import build
from tests.agent.process import eventually
from tests.systemd.kubelet import PATIENCE_S, Kubelet, pod_path, stand_alone
from tests.systemd.pods import PodAgent, below, everything, pod_agent, unit, values
from tests.systemd.units import ROOT, systemctl

MIB = 1 << 20
DB, HEAVY, IDLE, LATE = (f"{n}f5b1d7e-8c1a-4c3e-9d55-0a1b2c3d4e5f" for n in "1234")
POD, TOP, BURSTABLE = pod_path(DB), "kubepods.slice", "kubepods.slice/kubepods-burstable.slice"
FLOOR = 32 * MIB


@pytest.fixture(scope="module")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """A pod whose floor needs more weight than it asks for, a heavy neighbour, and one of class BestEffort."""
    with stand_alone(tmp_path_factory.mktemp("node")) as one:
        one.write("db", DB, labels={"app": "db"}, requests={"cpu": "100m"})
        one.write("heavy", HEAVY, requests={"cpu": "1"})
        one.write("idle", IDLE)
        one.start()
        for pod in (POD, pod_path(HEAVY), pod_path(IDLE, "besteffort")):
            assert eventually(lambda pod=pod: [*map(started, containers(pod))] == [True, True], PATIENCE_S)
        systemctl("daemon-reload")  # whatever systemd forgets then is forgotten before anything is compared
        yield one


@pytest.fixture(scope="module")
def before(kubelet: Kubelet) -> dict[str, object]:
    return everything(below(TOP))


@pytest.fixture(scope="module")
def agent(
    kubelet: Kubelet, before: dict[str, object], tmp_path_factory: pytest.TempPathFactory, clone: Path
) -> Iterator[PodAgent]:
    with pod_agent(tmp_path_factory.mktemp("agent"), clone) as one:
        one.configure(kubelet=kubelet.address)
        one.remember([build.reservation("db", labels={"app": "db"}, cpu="300m", memory="32Mi")])
        one.begin()
        assert eventually(lambda: memory_min(POD) == FLOOR)
        yield one


def started(container: str) -> bool:
    """runc has become what it starts: until then it sets properties of the unit, and systemd shows it as changed."""
    pids = (ROOT / container / "cgroup.procs").read_text().split()
    return bool(pids) and not any(Path(f"/proc/{pid}/comm").read_text().startswith("runc") for pid in pids)


def containers(pod: str) -> list[str]:
    """Sandbox and container, once they run."""
    return [str(path.relative_to(ROOT)) for path in (ROOT / pod).glob("cri-containerd-*.scope")]


def main_of(pod: str) -> str:
    """The sandbox has the least weight there is."""
    return max(containers(pod), key=weight)


def weight(path: str) -> int:
    return int((ROOT / path / "cpu.weight").read_text())


def memory_min(path: str) -> int:
    return int((ROOT / path / "memory.min").read_text())


def test_a_pod_its_container_and_the_groups_above_hold_the_floor_as_unit_properties(agent: PodAgent) -> None:
    paths = (TOP, BURSTABLE, POD, main_of(POD))
    assert eventually(lambda: {memory_min(path) for path in paths} == {FLOOR}, PATIENCE_S)
    assert [unit(path, "MemoryMin") for path in paths[1:]] == [{"MemoryMin": str(FLOOR)}] * 3
    assert unit(POD, "CPUWeight") == {"CPUWeight": str(weight(POD))}
    assert weight(POD) > weight(pod_path(HEAVY)), "asking for a tenth, it is promised more"
    assert weight(main_of(POD)) == 4, "inside of a pod the kubelet's weights stay"
    listed = agent.workloads()["db-guest"]
    assert listed["status"]["cgroup"] == POD
    assert listed["spec"]["parts"] == ["main"]


def test_pods_that_nobody_chose_are_left_alone(agent: PodAgent, before: dict[str, object]) -> None:
    others = [path for path in before if HEAVY.replace("-", "_") in path or "besteffort" in path]
    assert len(others) == 7, others
    assert everything(others) == {path: before[path] for path in others}
    assert set(agent.workloads()) == {"db-guest", "heavy-guest", "idle-guest"}


def test_a_reload_of_systemd_loses_nothing(agent: PodAgent) -> None:
    paths = [path for path in below(TOP) if path != TOP]  # which the kubelet may set at this very moment
    held = values(paths)
    systemctl("daemon-reload")
    assert values(paths) == held


def test_a_kubelet_that_sets_its_groups_anew_keeps_its_weights_and_the_floor_holds(
    kubelet: Kubelet, agent: PodAgent
) -> None:
    """A pod that comes or goes makes the kubelet write them: weights, and protected memory without ours."""
    first = weight(BURSTABLE)
    kubelet.write("late", LATE, requests={"cpu": "500m"})
    assert eventually(lambda: "late-guest" in agent.workloads(), PATIENCE_S)
    assert eventually(lambda: weight(BURSTABLE) > first)
    assert eventually(lambda: memory_min(TOP) == memory_min(BURSTABLE) == FLOOR, PATIENCE_S)
    kubelet.remove("late")
    assert eventually(lambda: "late-guest" not in agent.workloads(), PATIENCE_S)
    assert eventually(lambda: weight(BURSTABLE) == first, PATIENCE_S)
    assert eventually(lambda: memory_min(TOP) == memory_min(BURSTABLE) == memory_min(POD) == FLOOR, PATIENCE_S)


def test_a_revert_gives_everything_back_to_the_letter(agent: PodAgent, before: dict[str, object]) -> None:
    assert agent.client.post("/v1/revert", {})["left"] == []
    assert everything(before) == before, "what systemd shows, its files on disk, and the kernel's"
    agent.client.post("/v1/arm", {})
    assert eventually(lambda: memory_min(POD) == memory_min(main_of(POD)) == FLOOR)


def test_a_pod_resized_in_place_keeps_its_floor_and_gets_back_what_the_kubelet_gave_it_last(
    kubelet: Kubelet, agent: PodAgent
) -> None:
    main, pods = main_of(POD), Setting("workload/default/db-guest", "cpu.weight")
    kubelet.write("db", DB, labels={"app": "db"}, requests={"cpu": "200m"})
    assert eventually(lambda: weight(main) == 8, PATIENCE_S)
    assert eventually(lambda: agent.workloads()["db-guest"]["spec"]["requests"]["cpu"] == "200m")
    assert eventually(lambda: agent.originals().get(str(pods)) == "82", PATIENCE_S), agent.originals()
    assert eventually(lambda: memory_min(POD) == memory_min(main) == FLOOR and weight(POD) > 8)
    assert agent.client.post("/v1/revert", {})["left"] == []
    assert unit(POD, "CPUWeight", "MemoryMin") == {"CPUWeight": "8", "MemoryMin": "0"}
    assert (weight(POD), memory_min(POD), memory_min(main)) == (8, 0, 0)
    agent.client.post("/v1/arm", {})
