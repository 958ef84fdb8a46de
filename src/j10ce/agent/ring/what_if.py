"""What would be written, and why, for objects that exist only on paper. Pure: no privileges, nothing is touched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from j10ce.agent.dialects import Dialect, as_it_is
from j10ce.agent.ring.kubelets_tree import in_kubelets_tree
from j10ce.agent.ring.objects import chosen, entitlement, from_object
from j10ce.control.builtin import BUILTIN, build
from j10ce.control.controller import Controller
from j10ce.errors import Finding, Invalid
from j10ce.model import knob, schema
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS, NodeStrategy, QoSProfile
from j10ce.model.kinds import Workload as WorkloadObject
from j10ce.model.knob import KNOBS, NR_CPUS, ROOT, Setting, Support, TargetId, Value
from j10ce.model.machine.topology import Topology, from_report
from j10ce.model.parts.totals import TopologyReport
from j10ce.model.plan import HeldSetting, Make, Plan, ValueChange
from j10ce.model.quantity import Bytes, Quantity
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import Group, Groups, NodeFacts, Snapshot, Window
from j10ce.model.workload import APART, Handle, Workload, plain_path
from j10ce.plan.arbiter import arbitrate
from j10ce.plan.difference import Quantise
from j10ce.policy.document.document import NodeDocument, digest, reference
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import NOTHING_BESIDE, Beside, Resolution, resolve
from j10ce.policy.profiles import builtin
from j10ce.policy.strategy import merged
from j10ce.policy.validation.validate import validate

Object = TypeVar("Object", QoSProfile, MinimalReservationPolicy, NodeStrategy)
MOST_CONTAINERS: Final = 8192  # of all pods of a plan; a body of ordinary ones has fewer
TOP: Final = "j10ce"
EVERY_KNOB: Final = {name: Support(True, via="cgroup2") for name, knob in KNOBS.items() if not knob.rare}


class Paper(NamedTuple):
    """Objects sorted by what they are for."""

    profiles: tuple[QoSProfile, ...] = ()
    policies: tuple[MinimalReservationPolicy, ...] = ()
    workloads: tuple[Workload, ...] = ()
    pods: tuple[Workload, ...] = ()
    node: NodeFacts | None = None
    strategies: tuple[NodeStrategy, ...] = ()


class Present(Struct, frozen=True):
    """What is in force where the question is asked: the book, the tree, and how this agent decides and writes."""

    document: NodeDocument
    snap: Snapshot
    ledger: Ledger
    beside: Beside = NOTHING_BESIDE
    originals: Mapping[Setting, Value] = {}
    holds: tuple[HeldSetting, ...] = ()
    controllers: Sequence[Controller] = ()  # of the question's own: they may remember what they are shown
    quantise: Quantise = lambda _, value: value
    place: Callable[[str, str, str], Handle] = lambda tier, namespace, name: Handle(
        path=plain_path(TOP, tier, f"{namespace}_{name}")
    )
    owns: Callable[[str], bool] = lambda path: path.split("/")[0] in (TOP, plain_path(TOP, APART))


class WhatIf(Struct, frozen=True):
    """The answer: what everyone would be entitled to, and the plan from what is there to what would be."""

    node: NodeFacts
    snap: Snapshot
    resolution: Resolution
    plan: Plan


def whatif(
    raws: Iterable[object],
    node: NodeFacts,
    *,
    wall: float,
    present: Present | None = None,
    uid: int = 0,
    translate: Dialect = as_it_is,
) -> WhatIf:
    """`raws` are manifests as plain data; `present` is what is in force beside them, nothing unless given. `uid` is who
    would place the workloads among them here; `translate` understands what they say in other systems' words.

    Objects that describe another machine are planned for that one alone, by the same controllers, as root there would
    place them. Raises Invalid with the findings of all objects at once.
    """
    paper = read(raws, node, uid)
    if paper.node is not None or present is None:
        node = paper.node or node
        present = _bare(node, wall, present)
    living, document = present.snap.workloads, _document(present.document, paper, wall)
    local = (chosen(translate(w), document.profiles) for w in paper.workloads)  # as `run` would
    asked = (*local, *(in_kubelets_tree(translate(w), living.values()) for w in paper.pods))
    workloads = {**living, **{w.target: _since(w, living.get(w.target), wall) for w in asked}}
    said = merged(document.strategies)
    resolution = resolve(
        list(workloads.values()),
        document,
        node,
        wall=wall,
        before=present.ledger,
        beside=present.beside,
        strategy=said,
    )
    placed = {t: _placed(w, resolution, present) for t, w in workloads.items()}
    snap = replace(
        present.snap,
        wall=wall,
        groups=_groups(placed.values(), present),
        workloads=placed,
        entitlements=resolution.entitlements,
        epoch=present.snap.epoch + 1,
        strategy=said.strategy,
    )
    proposals = [p for controller in present.controllers for p in controller.propose(snap)]
    plan = arbitrate(proposals, snap, present.holds, present.quantise, originals=present.originals)
    return WhatIf(node, snap, resolution, plan)


def _bare(node: NodeFacts, wall: float, asked: Present | None) -> Present:
    """A machine with nothing on it, and the controllers of whoever is asked: as they are configured, without memory."""
    snap = Snapshot(0.0, wall, node, Groups(), Unmeasured(), support=EVERY_KNOB)
    configured = asked.controllers if asked else build({})
    fresh = [type(c)(c.config) for c in configured if type(c) in BUILTIN.values()]  # type: ignore[attr-defined, call-arg]
    return Present(NodeDocument(node=node.name, profiles=builtin()), snap, Ledger(NOTHING), controllers=fresh)


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
    if not answer.plan.changes:
        here = answer.resolution.entitlements
        lines.append("nothing to write" + ("" if here else ": no workload is here or among these objects"))
    lines += [f"! {note}" for note in (*answer.resolution.notes, *answer.plan.notes)]
    return "\n".join(lines)


def as_plain(answer: WhatIf) -> dict[str, Any]:
    return {
        "text": as_text(answer),
        "node": {"name": answer.node.name, "capacity": str(answer.node.capacity)},
        "entitlements": [entitlement(e) for e in answer.resolution.entitlements.values()],
        "changes": [_change(c) for c in answer.plan.changes],
        "notes": [*map(str, answer.resolution.notes), *answer.plan.notes],
    }


def read(raws: Iterable[object], node: NodeFacts, uid: int = 0) -> Paper:
    """Sort manifests by kind; a node among them takes the place of this one for percentages too."""
    findings: list[Finding] = []
    objects: list[Any] = []
    for n, raw in enumerate(raws):
        try:
            objects.append(raw if _is_kubernetes(raw) else _checked(raw))
        except Invalid as e:
            findings += [f._replace(path=f"[{n}].{f.path}".rstrip(".")) for f in e.findings]
    if findings or (findings := _crowded(objects)):
        raise Invalid(findings, "objects")
    other = next((facts for o in objects if (facts := _node(o, node)) is not None), None)
    where = other or node
    named = [_dig(o, "metadata") for o in objects if isinstance(o, dict) and o["kind"] == "Namespace"]
    namespaces = {str(meta.get("name", "")): _dig(meta, "labels") for meta in named}
    return Paper(
        tuple(o for o in objects if isinstance(o, QoSProfile)),
        tuple(o for o in objects if isinstance(o, MinimalReservationPolicy)),
        tuple(from_object(o, where, uid=0 if other else uid) for o in objects if isinstance(o, WorkloadObject)),
        tuple(_pod(o, namespaces) for o in objects if isinstance(o, dict) and o["kind"] == "Pod"),
        other,
        tuple(o for o in objects if isinstance(o, NodeStrategy)),
    )


def _crowded(objects: Iterable[Any]) -> list[Finding]:
    """Each is worth a fraction of a millisecond, and the next plan waits for this one."""
    listed = [_dig(o, "spec").get("containers") for o in objects if isinstance(o, dict) and o["kind"] == "Pod"]
    count = sum(len(containers) for containers in listed if isinstance(containers, list))
    hint = f"send pods of at most {MOST_CONTAINERS}"
    return [Finding("", count, "too many containers", hint)] if count > MOST_CONTAINERS else []


class Unmeasured:
    """Readings of a machine that nobody has measured."""

    def window(self, target: TargetId, metric: str, span_s: float) -> Window:
        return Nothing()

    def timed(self, target: TargetId, metric: str, span_s: float) -> Sequence[tuple[float, float]]:
        return ()


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
    """One without a namespace is in `default`, where `apply` puts it."""
    obj = schema.decode(raw)
    if findings := validate(obj):
        raise Invalid(findings)
    if KINDS[obj.kind].namespaced and not obj.metadata.namespace:
        return replace(obj, metadata=replace(obj.metadata, namespace="default"))
    return obj


def _is_kubernetes(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("apiVersion") == "v1" and raw.get("kind") in ("Pod", "Node", "Namespace")


def _document(base: NodeDocument, paper: Paper, wall: float) -> NodeDocument:
    """What is in force with the paper's objects in place of those of the same name; new ones are created now."""
    merged = replace(
        base,
        profiles=_merged(base.profiles, paper.profiles, wall),
        policies=_merged(base.policies, paper.policies, wall),
        strategies=_merged(base.strategies, paper.strategies, wall),
    )
    return replace(merged, hash=digest(merged))


def _merged(base: Iterable[Object], paper: Iterable[Object], wall: float) -> tuple[Object, ...]:
    """Whoever stores an object sets when it was created, once; what the paper says of it counts nothing."""
    merged = {reference(o): o for o in base}
    for obj in paper:
        known = merged.get(reference(obj))
        created = known.metadata.creation_timestamp if known else datetime.fromtimestamp(wall, UTC)
        merged[reference(obj)] = replace(obj, metadata=replace(obj.metadata, creation_timestamp=created))
    return tuple(merged.values())


def _since(w: Workload, living: Workload | None, wall: float) -> Workload:
    """One that is there stays where it is, and as old as it is."""
    if living is None:
        return replace(w, since=wall)
    kept = {
        name: getattr(living, name)
        for name in ("since", "handle", "parts", "pids", "uid", "vouched", "namespace_labels")
    }
    return replace(w, **kept)


def _placed(w: Workload, resolution: Resolution, present: Present) -> Workload:
    entitled = resolution.entitlements[w.target]
    if w.handle.path or not entitled.chosen:
        return w
    return replace(w, handle=present.place(entitled.tier.value, w.namespace, w.name))


def _groups(workloads: Iterable[Workload], present: Present) -> Groups:
    """What is there, and every workload with all its ancestors; those that are not there yet are to be made."""
    groups = {ROOT: Group(ROOT, None, "", owned=False), **present.snap.groups.by_target}
    for w in workloads:
        if not w.handle.path:
            continue
        steps = w.handle.path.split("/")
        parent = ROOT
        for depth in range(1, len(steps)):
            path = "/".join(steps[:depth])
            here = knob.group(path)
            ours = present.owns(path)  # what is not, its owner makes before anybody is in it
            groups.setdefault(here, Group(here, parent, path, owned=ours, exists=not ours))
            parent = here
        mine = w.handle.made
        groups.setdefault(w.target, Group(w.target, parent, w.handle.path, owned=mine, exists=not mine))
    return Groups(groups)


def _node(obj: Any, node: NodeFacts) -> NodeFacts | None:
    if isinstance(obj, NodeQoS):
        return _sized(node, obj.metadata.name, obj.status.node.capacity, obj.status.node.topology)
    if isinstance(obj, dict) and obj["kind"] == "Node":
        capacity = _dig(obj, "status", "capacity")
        sizes: dict[str, Quantity] = {r: Quantity.parse(capacity[r]) for r in ("cpu", "memory") if r in capacity}
        return _sized(node, str(_dig(obj, "metadata").get("name", "node")), sizes)
    return None


def _sized(
    node: NodeFacts, name: str, capacity: Mapping[str, Quantity], reported: TopologyReport | UnsetType = UNSET
) -> NodeFacts:
    """Without a word about its topology no two of its CPUs share a core."""
    threads = 0 if reported is UNSET else reported.threads
    cpus = math.floor(capacity["cpu"].of(len(node.cpus))) if "cpu" in capacity else threads or len(node.cpus)
    if cpus > NR_CPUS:
        many = Finding("capacity.cpu", str(capacity["cpu"]), "more CPUs than any machine has", f"at most {NR_CPUS}")
        raise Invalid([many], f"node {name}")
    memory = capacity["memory"].bytes(Bytes(node.memory)) if "memory" in capacity else node.memory
    here = frozenset(range(max(1, cpus)))
    try:
        topology = Topology() if reported is UNSET else from_report(reported, here)
    except ValueError as e:
        path, hint = "status.node.topology", "write lists of CPUs as 0-3,8"
        raise Invalid([Finding(path, None, str(e), hint)], f"node {name}") from None
    return replace(node, name=name, cpus=here, cpu_quota=math.inf, memory=memory, topology=topology)


def _pod(raw: dict[str, Any], namespaces: Mapping[str, dict[str, Any]]) -> Workload:
    """As an agent on Kubernetes would see it; one that is yet to be named bears the beginning of its name."""
    # Hosts without Kubernetes need none of it before someone asks.
    from j10ce.adapters.kubernetes_workload import workload
    from j10ce.model.kube.native import without_nulls
    from j10ce.model.kube.pod import Pod

    pod = schema.convert(without_nulls(raw), Pod)
    name = pod.metadata.name or str(_dig(raw, "metadata").get("generateName", "pod")).rstrip("-")
    meta = replace(pod.metadata, name=name, namespace=pod.metadata.namespace or "default")
    labels = {str(key): str(value) for key, value in namespaces.get(meta.namespace, {}).items()}
    return workload(replace(pod, metadata=meta), labels, Handle(), {})


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
