"""What would be written, and why, for objects that exist only on paper. Pure: no privileges, nothing is touched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from j10ce.agent.objects import ceiling, from_object, namespace_labels
from j10ce.control.builtin import build
from j10ce.errors import Finding, Invalid
from j10ce.model import knob, schema
from j10ce.model.kinds import MinimalReservationPolicy, Minimum, NodeQoS, QoSProfile
from j10ce.model.kinds import Workload as WorkloadObject
from j10ce.model.knob import KNOBS, ROOT, Support, TargetId
from j10ce.model.plan import HeldSetting, Make, Plan, ValueChange
from j10ce.model.quantity import Bytes, Quantity
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import Group, Groups, NodeFacts, Snapshot, Window
from j10ce.model.workload import APART, Ceiling, Handle, Workload, plain_path
from j10ce.plan.arbiter import arbitrate
from j10ce.policy.document import NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.policy.resolve import Resolution, amounts, resolve
from j10ce.policy.validate import validate

TOP: Final = "j10ce"
EVERY_KNOB: Final = {name: Support(True, via="cgroup2") for name in KNOBS}


class Paper(NamedTuple):
    """Objects sorted by what they are for."""

    profiles: tuple[QoSProfile, ...] = ()
    policies: tuple[MinimalReservationPolicy, ...] = ()
    workloads: tuple[Workload, ...] = ()
    node: NodeFacts | None = None


class WhatIf(Struct, frozen=True):
    """The answer: what everyone would be entitled to, and the plan from an empty tree."""

    node: NodeFacts
    snap: Snapshot
    resolution: Resolution
    plan: Plan


def whatif(
    raws: Iterable[object],
    node: NodeFacts,
    *,
    wall: float,
    document: NodeDocument | None = None,
    present: Snapshot | None = None,
    top: str = TOP,
    holds: Sequence[HeldSetting] = (),
) -> WhatIf:
    """`raws` are manifests as plain data; `document` and `present` are what is in force beside them.

    Objects that describe another machine are planned for that one alone. Raises Invalid with the findings of all
    objects at once.
    """
    paper = read(raws, node)
    if paper.node is not None:
        node, document, present = paper.node, None, None
    living = present.workloads if present else {}
    workloads = {**living, **{w.target: w for w in paper.workloads}}
    resolution = resolve(list(workloads.values()), _document(document, paper, node), node, wall=wall)
    placed = {t: _placed(w, resolution, top) for t, w in workloads.items()}
    base = present or Snapshot(0.0, wall, node, Groups(), Unmeasured(), support=EVERY_KNOB)
    groups = _groups(placed.values(), base.groups, top)
    snap = replace(base, wall=wall, groups=groups, workloads=placed, entitlements=resolution.entitlements)
    proposals = [p for controller in build({}) for p in controller.propose(snap)]
    return WhatIf(node, snap, resolution, arbitrate(proposals, snap, holds, lambda s, v: v))


def as_text(answer: WhatIf) -> str:
    """Line by line, as `plan` prints it."""
    lines = [f"node {answer.node.name}: {answer.node.capacity}"]
    for target, e in sorted(answer.resolution.entitlements.items()):
        profile = f"profile {e.profile}" if e.profile else "no profile"
        lines.append(f"{target}: {profile}, tier {e.tier.value}, floor {e.floor}")
        lines += [f"  ! {note}" for note in e.notes]
    for change in answer.plan.changes:
        if isinstance(change, ValueChange):
            lines.append(
                f"  {change.setting} = {knob.render(change.setting.knob, change.new)}  ({change.owner}: {change.why})"
            )
        elif isinstance(change, Make):
            lines.append(f"  make {change.path}  ({change.why})")
    lines += [f"! {note}" for note in (*answer.resolution.notes, *answer.plan.notes)]
    return "\n".join(lines)


def as_plain(answer: WhatIf) -> dict[str, Any]:
    return {
        "text": as_text(answer),
        "node": {"name": answer.node.name, "capacity": str(answer.node.capacity)},
        "entitlements": [schema.plain(e) for e in answer.resolution.entitlements.values()],
        "changes": [_change(c) for c in answer.plan.changes],
        "notes": [*answer.resolution.notes, *answer.plan.notes],
    }


def read(raws: Iterable[object], node: NodeFacts) -> Paper:
    """Sort manifests by kind; a node among them takes the place of this one for percentages too."""
    findings: list[Finding] = []
    objects: list[Any] = []
    for n, raw in enumerate(raws):
        try:
            objects.append(raw if _is_kubernetes(raw) else _checked(raw))
        except Invalid as e:
            findings += [f._replace(path=f"[{n}].{f.path}".rstrip(".")) for f in e.findings]
    if findings:
        raise Invalid(findings, "objects")
    other = next((found for o in objects if (found := _node(o, node)) is not None), None)
    where = other or node
    return Paper(
        tuple(o for o in objects if isinstance(o, QoSProfile)),
        tuple(o for o in objects if isinstance(o, MinimalReservationPolicy)),
        tuple(w for o in objects if (w := _workload(o, where)) is not None),
        other,
    )


class Unmeasured:
    """Readings of a machine that nobody has measured."""

    def window(self, target: TargetId, metric: str, span_s: float) -> Window:
        return Nothing()


class Nothing:
    def last(self) -> float | None:
        return None

    def mean(self) -> float | None:
        return None

    def peak(self) -> float | None:
        return None

    def quantile(self, q: float) -> float | None:
        return None

    def __len__(self) -> int:
        return 0


def _checked(raw: object) -> Any:
    obj = schema.decode(raw)
    if found := validate(obj):
        raise Invalid(found)
    return obj


def _is_kubernetes(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("apiVersion") == "v1" and raw.get("kind") in ("Pod", "Node")


def _document(document: NodeDocument | None, paper: Paper, node: NodeFacts) -> NodeDocument:
    """What is in force with the paper's objects in place of those of the same name."""
    base = document or NodeDocument(node=node.name, profiles=builtin())
    profiles = {p.metadata.name: p for p in (*base.profiles, *paper.profiles)}
    policies = {(p.metadata.namespace, p.metadata.name): p for p in (*base.policies, *paper.policies)}
    merged = replace(base, profiles=tuple(profiles.values()), policies=tuple(policies.values()))
    return replace(merged, hash=digest(merged))


def _placed(w: Workload, resolution: Resolution, top: str) -> Workload:
    if w.handle.path:
        return w
    tier = resolution.entitlements[w.target].tier.value
    return replace(w, handle=Handle(path=plain_path(top, tier, f"{w.namespace}_{w.name}")), pids=())


def _groups(workloads: Iterable[Workload], present: Groups, top: str) -> Groups:
    """What is there, and every workload with all its ancestors; those that are not there yet are to be made."""
    found = {ROOT: Group(ROOT, None, "", owned=False), **present.by_target}
    ours = (top, plain_path(top, APART))
    for w in workloads:
        steps = w.handle.path.split("/")
        parent = ROOT
        for depth in range(1, len(steps)):
            path = "/".join(steps[:depth])
            here = knob.group(path)
            found.setdefault(here, Group(here, parent, path, owned=steps[0] in ours, exists=False))
            parent = here
        found.setdefault(w.target, Group(w.target, parent, w.handle.path, owned=w.handle.made, exists=False))
    return Groups(found)


def _node(obj: Any, node: NodeFacts) -> NodeFacts | None:
    if isinstance(obj, NodeQoS):
        return _sized(node, obj.metadata.name, obj.status.node.capacity)
    if isinstance(obj, dict) and obj["kind"] == "Node":
        capacity = _dig(obj, "status", "capacity")
        sizes: dict[str, Quantity] = {r: Quantity.parse(capacity[r]) for r in ("cpu", "memory") if r in capacity}
        return _sized(node, str(_dig(obj, "metadata").get("name", "node")), sizes)
    return None


def _sized(node: NodeFacts, name: str, capacity: Mapping[str, Quantity]) -> NodeFacts:
    cpus = math.floor(capacity["cpu"].of(len(node.cpus))) if "cpu" in capacity else len(node.cpus)
    memory = capacity["memory"].bytes(Bytes(node.memory)) if "memory" in capacity else node.memory
    return replace(node, name=name, cpus=frozenset(range(max(1, cpus))), memory=memory)


def _workload(obj: Any, node: NodeFacts) -> Workload | None:
    if isinstance(obj, WorkloadObject):
        return from_object(obj, node)
    return _pod(obj, node) if isinstance(obj, dict) and obj["kind"] == "Pod" else None


def _pod(raw: dict[str, Any], node: NodeFacts) -> Workload:
    """A pod asks for the sum of its containers; it has a limit only where every container has one."""
    meta = _dig(raw, "metadata")
    namespace = str(meta.get("namespace", "default"))
    containers = _dig(raw, "spec").get("containers") or [{}]
    asked = [_minimum(_dig(c, "resources", "requests")) for c in containers]
    limits = [ceiling(_minimum(_dig(c, "resources", "limits")), node) for c in containers]
    requests = NOTHING
    for one in asked:
        requests = requests.plus(amounts(one, node.capacity))
    limit = Ceiling(math.fsum(c.cpu for c in limits), math.fsum(c.memory for c in limits))
    return Workload(
        namespace,
        str(meta.get("name") or meta.get("generateName", "pod")).rstrip("-"),
        labels={str(k): str(v) for k, v in (meta.get("labels") or {}).items()},
        namespace_labels=namespace_labels(namespace, uid=1),
        requests=requests,
        limits=limit,
        critical=str(_dig(raw, "spec").get("priorityClassName", "")).startswith("system-"),
    )


def _minimum(raw: Mapping[str, Any]) -> Minimum:
    return schema.convert({k: str(v) for k, v in raw.items() if k in ("cpu", "memory")}, Minimum)


def _dig(raw: Any, *path: str) -> dict[str, Any]:
    for key in path:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


def _change(change: Any) -> dict[str, Any]:
    if isinstance(change, ValueChange):
        s = change.setting
        shown = {"target": s.target, "knob": s.knob, "value": knob.render(s.knob, change.new)}
        return shown | {"owner": change.owner, "why": change.why}
    return {"target": change.target, "does": type(change).__name__.lower(), "why": change.why}
