"""All that can be wrong with an object beyond its shape, at once: where, which value, and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import (
    IGNORE_LABEL,
    Credential,
    Hold,
    Meta,
    MinimalReservationPolicy,
    Minimum,
    NodeQoS,
    NodeStrategy,
    Object,
    PolicyRevision,
    QoSProfile,
    Rollout,
    Workload,
)
from j10ce.model.knob import KNOBS, NODE, ROOT, Deed, Setting, parse_value, read_names
from j10ce.model.quantity import Quantity
from j10ce.model.text.near import near, one_of
from j10ce.policy.profiles import canonical
from j10ce.policy.reach import home, reaches
from j10ce.policy.validation import syntax
from j10ce.policy.validation.credential import credential
from j10ce.policy.validation.sections import outside, percentage, sections
from j10ce.policy.validation.strategy import MOST_CPUS, longer_than_nothing, strategy_findings

MOST_UNITS: Final = 1_000_000
MOST_PRIORITY: Final = 1_000_000
MOST_SETTINGS: Final = 64  # of one hold: each costs every node that it reaches something on every tick
MOST_ANNOTATIONS: Final = 256 << 10  # bytes, as in Kubernetes
# Together with its namespace it has to fit in the name of one directory or unit.
MOST_WORKLOAD_NAME: Final = 128


def validate(obj: Object) -> list[Finding]:
    """Every finding of an object that decodes; status is not looked at."""
    return [*_meta(obj), *_spec(obj)]


def _spec(obj: Object) -> Iterator[Finding]:
    match obj:
        case QoSProfile():
            return _profile(obj)
        case MinimalReservationPolicy():
            return _reservation(obj)
        case NodeStrategy():
            return _strategy(obj)
        case NodeQoS():
            return syntax.labels("spec.labels", obj.spec.labels)
        case Hold():
            return _hold(obj)
        case Workload():
            return _workload(obj)
        case PolicyRevision():
            return outside("revision", obj.revision, 1, 2**53)
        case Credential():
            return credential(obj.metadata.name, obj.spec)


def _meta(obj: Object) -> Iterator[Finding]:
    meta, most = obj.metadata, MOST_WORKLOAD_NAME if isinstance(obj, Workload) else 253
    if meta.name or not meta.generate_name:
        yield from syntax.name("metadata.name", meta.name, most=most)
    else:
        # The store puts letters and digits behind it.
        yield from syntax.name("metadata.generateName", f"{meta.generate_name}x", most=most)
    if meta.namespace and not KINDS[obj.kind].namespaced:
        yield Finding("metadata.namespace", meta.namespace, f"a {obj.kind} has no namespace", "remove it")
    elif meta.namespace:
        yield from syntax.namespace("metadata.namespace", meta.namespace)
    if meta.labels or meta.annotations:
        yield from _labels_and_annotations(meta)
    if sum(owner.controller for owner in meta.owner_references) > 1:
        yield Finding("metadata.ownerReferences", None, "several controllers", "set controller of one at most")
    for n, entry in enumerate(meta.managed_fields):
        if entry.time is not UNSET:
            yield from syntax.moment(f"metadata.managedFields[{n}].time", entry.time)


def _labels_and_annotations(meta: Meta) -> Iterator[Finding]:
    yield from syntax.labels("metadata.labels", meta.labels)
    ignore = meta.labels.get(IGNORE_LABEL, "true")
    if ignore not in ("true", "false"):
        yield Finding(f"metadata.labels.{IGNORE_LABEL}", ignore, "not a truth value", 'use "true" or "false"')
    for key in meta.annotations:
        yield from syntax.label_key(f"metadata.annotations.{key}", key)
    size = sum(len(k) + len(v.encode(errors="replace")) for k, v in meta.annotations.items())
    if size > MOST_ANNOTATIONS:
        yield Finding("metadata.annotations", None, f"{size} bytes", f"keep them within {MOST_ANNOTATIONS}")


def _profile(obj: QoSProfile) -> Iterator[Finding]:
    spec = obj.spec
    known = canonical(obj.metadata.name)
    if known != obj.metadata.name and syntax.SUBDOMAIN.fullmatch(obj.metadata.name):
        yield Finding("metadata.name", obj.metadata.name, f"another spelling of {known}", "choose another name")
    yield from outside("spec.priority", spec.priority, -MOST_PRIORITY, MOST_PRIORITY)
    if spec.selector is not UNSET:
        yield from syntax.selector("spec.selector", spec.selector)
    if spec.namespace_selector is not UNSET:
        yield from syntax.selector("spec.namespaceSelector", spec.namespace_selector)
    yield from _rollout(spec.rollout)
    yield from sections(spec)


def _reservation(obj: MinimalReservationPolicy) -> Iterator[Finding]:
    spec = obj.spec
    yield from _minimum("spec.minimum", spec.minimum, percent_allowed=spec.units <= 0)
    if not any(q.amount for _, q in given(spec.minimum)):
        yield Finding("spec.minimum", None, "promises nothing", "give at least one of cpu, memory, network, diskRead")
    yield from outside("spec.units", spec.units, 0, MOST_UNITS)
    yield from syntax.selector("spec.selector", spec.selector)
    if spec.node_selector is not UNSET:
        yield from syntax.selector("spec.nodeSelector", spec.node_selector)
    yield from longer_than_nothing("spec.ttl", spec.ttl)
    yield from longer_than_nothing("spec.lending.within", spec.lending.within)
    if spec.lending.mode == "None" and spec.lending.within is not UNSET:
        yield Finding("spec.lending.within", str(spec.lending.within), "nothing is lent", "set mode to Reclaimable")
    yield from _rollout(spec.rollout)


def _strategy(obj: NodeStrategy) -> Iterator[Finding]:
    spec = obj.spec
    yield from outside("spec.priority", spec.priority, -MOST_PRIORITY, MOST_PRIORITY)
    if spec.node_selector is not UNSET:
        yield from syntax.selector("spec.nodeSelector", spec.node_selector)
    yield from _rollout(spec.rollout)
    yield from strategy_findings(spec)


def _rollout(rollout: Rollout | UnsetType) -> Iterator[Finding]:
    if rollout is UNSET:
        return
    yield from outside("spec.rollout.canaryPercent", rollout.canary_percent, 0, 100)
    yield from outside("spec.rollout.attempt", rollout.attempt, 0, 2**53)


def _hold(obj: Hold) -> Iterator[Finding]:
    spec, namespace = obj.spec, obj.metadata.namespace
    yield from syntax.target("spec.target", spec.target)
    if namespace and syntax.is_target(spec.target) and not reaches(obj):
        where = f"write it in namespace {home(spec.target)}"
        yield Finding("spec.target", spec.target, f"beyond the reach of namespace {namespace}", where)
    if spec.target == ROOT and spec.value is not UNSET:
        yield Finding("spec.value", spec.value, "the root's own settings are never written", "leave value out")
    if not spec.knobs:
        yield Finding("spec.knobs", [], "holds nothing", "name at least one knob")
    yield from knobs("spec.knobs", spec.knobs)
    if spec.value is not UNSET:
        for knob in sorted({knob for name in spec.knobs for knob, _ in read_names(name)}):
            yield from _value(knob, spec.value)
    yield from syntax.moment("spec.expires", spec.expires)
    if spec.node:
        yield from syntax.name("spec.node", spec.node)
    if not spec.why.strip():
        yield Finding("spec.why", spec.why, "empty", "say why, for whoever finds the hold")
    yield from syntax.reason("spec.why", spec.why)


def knobs(path: str, named: Sequence[str]) -> Iterator[Finding]:
    """Each one is known, and named once: the value of a hold is read for each. A deed can be held as well.

    What is held is looked at on every tick, so that there are few of a hold.
    """
    seen: set[str] = set()
    settings = 0
    for n, knob in enumerate(named):
        meant = read_names(knob)
        settings += max(1, len(meant))
        if not meant and knob not in DEEDS:
            yield unknown_knob(f"{path}[{n}]", knob)
        elif one := next((name for name, instance in meant if instance and not KNOBS[name].several), None):
            yield Finding(f"{path}[{n}]", knob, f"{one} has one value", f"write {one}")
        elif knob in seen:
            yield Finding(f"{path}[{n}]", knob, "named twice", "name each knob once")
        seen.add(knob)
    if settings > MOST_SETTINGS:
        hint = f"at most {MOST_SETTINGS}; without its instance a knob means all that are there"
        yield Finding(path, None, f"{settings} settings", hint)


DEEDS: Final = frozenset(deed.value for deed in Deed)


def unknown_knob(path: str, name: str) -> Finding:
    """What is said of a name that no knob has; a file of cgroup v1 is known by the knob that it stands for."""
    of_v1 = next((k.name for k in KNOBS.values() if name and name == k.v1), "")
    if of_v1:
        hint = f"that is {of_v1} here, whatever the cgroup version"
    elif several := _with_instance(name):
        hint = f"did you mean {several}? what there is several times stands in brackets"
    else:
        family = (near(name, KNOBS) or name).partition(".")[0]
        akin = [knob for knob in KNOBS if knob.partition(".")[0] == family]
        families = dict.fromkeys(f"{knob.partition('.')[0]}.…" for knob in KNOBS)
        hint = one_of(name, akin) if akin else f"use one of {', '.join(families)}"
    return Finding(path, name, "unknown knob", hint)


def _with_instance(name: str) -> str:
    """A knob of links, disks or caches, with one of them in a spelling of its own: `net.egress.ceil@eth0`."""
    knob = max((k.name for k in KNOBS.values() if k.several and name.startswith(k.name)), key=len, default="")
    instance = name.removeprefix(knob).strip(" .:/@=[]")
    return Setting(NODE, knob, instance).name if knob and instance else ""


def _value(knob: str, text: str) -> Iterator[Finding]:
    try:
        parse_value(knob, text)
    except ValueError as e:
        yield Finding("spec.value", text, f"not a value of {knob}", str(e))


def _workload(obj: Workload) -> Iterator[Finding]:
    spec = obj.spec
    if spec.node:
        yield from syntax.name("spec.node", spec.node)
    for section in ("requests", "limits", "minimum"):
        yield from _minimum(f"spec.{section}", getattr(spec, section), percent_allowed=section == "minimum")
    limits = dict(given(spec.limits))
    for resource, q in limits.items():
        if not q.amount:
            yield Finding(f"spec.limits.{resource}", str(q), "leaves it nothing", "give more than 0, or leave it out")
    for section in ("requests", "minimum"):
        for resource, q in given(getattr(spec, section)):
            limit = limits.get(resource)
            if limit is not None and not q.percent and q.amount > limit.amount:
                yield Finding(f"spec.{section}.{resource}", str(q), f"above the limit of {limit}")
    if spec.node_selector is not UNSET:
        yield from syntax.selector("spec.nodeSelector", spec.node_selector)
    for n, part in enumerate(spec.parts):
        yield from syntax.name(f"spec.parts[{n}]", part)


def given(minimum: Minimum) -> Iterator[tuple[str, Quantity]]:
    """(resource, amount) of those that are said."""
    fields = {
        "cpu": minimum.cpu,
        "memory": minimum.memory,
        "network": minimum.network,
        "diskRead": minimum.disk_read,
        "diskWrite": minimum.disk_write,
    }
    return ((name, q) for name, q in fields.items() if q is not UNSET)


def _minimum(path: str, minimum: Minimum, *, percent_allowed: bool) -> Iterator[Finding]:
    for resource, q in given(minimum):
        if q.percent and not percent_allowed:
            why = "units are held before a node is known" if path == "spec.minimum" else "it is the workload's own"
            yield Finding(f"{path}.{resource}", str(q), "a percentage is not allowed here", f"write an amount: {why}")
        elif q.percent:
            yield from percentage(f"{path}.{resource}", q)
        elif q.rate and resource != "network":
            yield Finding(f"{path}.{resource}", str(q), "written as a line rate, in bits", "write it without bit")
        elif resource == "cpu" and q.amount > MOST_CPUS:
            yield Finding(f"{path}.cpu", str(q), "more CPUs than any machine has", "write 500m or 2")
