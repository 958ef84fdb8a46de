"""Pods and containers are found in every layout that kubelets and runtimes make."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.adapters.kubernetes_cgroups import PodTree
from j10ce.host.mounts import Hierarchies, Mount

UID = "2f5b1d7e-8c1a-4c3e-9d55-0a1b2c3d4e5f"
UNIT = UID.replace("-", "_")
STATIC = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"  # a kubelet's own uids have no dashes
ID = "c0ffee" + "0" * 58
IN_USE = frozenset({"cpu", "cpuacct", "cpuset", "memory"})

LAYOUTS = {
    "cgroupfs, guaranteed": (UID, f"kubepods/pod{UID}", ID),
    "cgroupfs, burstable": (UID, f"kubepods/burstable/pod{UID}", ID),
    "cgroupfs, best-effort": (UID, f"kubepods/besteffort/pod{UID}", ID),
    "cgroupfs, a root of its own": (UID, f"k8s/node/kubepods/burstable/pod{UID}", ID),
    "cgroupfs, a static pod": (STATIC, f"kubepods/burstable/pod{STATIC}", ID),
    "systemd, guaranteed, containerd": (UID, f"kubepods.slice/kubepods-pod{UNIT}.slice", f"cri-containerd-{ID}.scope"),
    "systemd, burstable, containerd": (
        UID,
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNIT}.slice",
        f"cri-containerd-{ID}.scope",
    ),
    "systemd, best-effort, CRI-O": (
        UID,
        f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNIT}.slice",
        f"crio-{ID}.scope",
    ),
    "systemd, burstable, Docker": (
        UID,
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNIT}.slice",
        f"docker-{ID}.scope",
    ),
    "systemd, a root of its own": (
        UID,
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
        f"/kubelet-kubepods-burstable-pod{UNIT}.slice",
        f"cri-containerd-{ID}.scope",
    ),
}


def hierarchies(folder: Path, version: int) -> Hierarchies:
    if version == 2:
        unified = Mount(str(folder), 2, IN_USE)
        return Hierarchies(dict.fromkeys(IN_USE, unified), unified)
    return Hierarchies({c: Mount(str(folder / c), 1, frozenset({c})) for c in IN_USE})


def make(folder: Path, version: int, path: str) -> None:
    for top in [folder] if version == 2 else [folder / c for c in IN_USE]:
        (top / path).mkdir(parents=True)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_pod_and_its_container_are_found(tmp_path: Path, version: int, layout: tuple[str, str, str]) -> None:
    uid, path, container = layout
    make(tmp_path, version, f"{path}/{container}")
    make(tmp_path, version, "system.slice/kubelet.service")
    tree = PodTree(hierarchies(tmp_path, version))
    tree.look()
    cgroups = tree.pod(uid)
    assert cgroups is not None
    assert (cgroups.path, cgroups.made) == (path, False)
    assert cgroups.unit == (path.rpartition("/")[2] if path.endswith(".slice") else "")
    assert {key: handle.path for key, handle in tree.containers(cgroups).items()} == {ID: f"{path}/{container}"}


@pytest.mark.parametrize("stranger", ["crio-conmon-" + ID + ".scope", "init", "container", "nested.slice"])
def test_what_is_no_container_is_none(tmp_path: Path, stranger: str) -> None:
    make(tmp_path, 2, f"kubepods/pod{UID}/{stranger}")
    tree = PodTree(hierarchies(tmp_path, 2))
    tree.look()
    cgroups = tree.pod(UID)
    assert cgroups is not None
    assert tree.containers(cgroups) == {}


def test_cruns_inner_cgroup_does_not_hide_the_scope(tmp_path: Path) -> None:
    pod = f"kubepods.slice/kubepods-pod{UNIT}.slice"
    make(tmp_path, 2, f"{pod}/crio-{ID}.scope/container")
    tree = PodTree(hierarchies(tmp_path, 2))
    tree.look()
    cgroups = tree.pod(UID)
    assert cgroups is not None
    assert tree.containers(cgroups)[ID].path == f"{pod}/crio-{ID}.scope"


def test_a_pod_that_is_not_in_every_hierarchy_yet_is_awaited(tmp_path: Path) -> None:
    path = f"kubepods/pod{UID}"
    make(tmp_path, 1, "kubepods")
    for controller in ("cpu", "cpuacct", "cpuset"):
        (tmp_path / controller / path).mkdir()
    tree = PodTree(hierarchies(tmp_path, 1))
    tree.look()
    assert tree.pod(UID) is None
    (tmp_path / "memory" / path).mkdir()
    tree.look()
    assert tree.pod(UID) is not None


def test_a_kubelet_that_starts_later_and_a_pod_that_goes_are_noticed(tmp_path: Path) -> None:
    tree = PodTree(hierarchies(tmp_path, 2))
    tree.look()
    assert tree.pod(UID) is None
    make(tmp_path, 2, f"kubepods/pod{UID}")
    tree.look()
    assert tree.pod(UID) is not None
    (tmp_path / f"kubepods/pod{UID}").rmdir()
    tree.look()
    assert tree.pod(UID) is None
