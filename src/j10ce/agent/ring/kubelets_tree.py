"""Where a kubelet would put a pod that exists only on paper: its cgroup is never ours to choose. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from j10ce.model.workload import Handle, Workload

ROOT: Final = re.compile(r"(?:[^/]+/)*?(?:[^/]+-)?kubepods(?:\.slice)?(?=/)")
CLASSES: Final = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
ALONE: Final = "kubepods"  # of the cgroupfs driver, where no pod shows which one there is


def in_kubelets_tree(pod: Workload, neighbours: Iterable[Workload]) -> Workload:
    """Beside the pods that are here, by the names of their driver; its class is Kubernetes' own."""
    if pod.handle.path:
        return pod
    root = next((m[0] for w in neighbours if not w.handle.made and (m := ROOT.match(w.handle.path))), ALONE)
    # The API server gives a uid; until then its name tells it from all others.
    return replace(pod, handle=_handle(root, CLASSES[pod.native_class], f"{pod.namespace}-{pod.name}"))


def _handle(root: str, level: str, uid: str) -> Handle:
    if not root.endswith(".slice"):
        return Handle(path="/".join(filter(None, (root, level, f"pod{uid}"))), made=False)
    stem = root.rpartition("/")[2].removesuffix(".slice") + (f"-{level}" if level else "")
    unit = f"{stem}-pod{uid.replace('-', '_')}.slice"
    return Handle(path="/".join(filter(None, (root, f"{stem}.slice" if level else "", unit))), unit=unit, made=False)
