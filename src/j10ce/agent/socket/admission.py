"""Who may be placed or adopted, as what: every check before the ring hears of a workload."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import field

from j10ce.errors import Denied, Finding, Invalid, NotFound
from j10ce.host.mounts import IN_USE, IO, UNIFIED, inside
from j10ce.kernel.process import Process, descendants, process
from j10ce.model.bounds import Annotations, Labels, Number, Word
from j10ce.model.kinds import Minimum, QoSProfile, Strict
from j10ce.model.kinds import Workload as WorkloadObject
from j10ce.model.knob import FREEZER
from j10ce.model.resource import RESOURCES
from j10ce.model.snapshot import NodeFacts
from j10ce.model.text.near import one_of
from j10ce.model.workload import APART, HOST_NAMESPACE, Handle, Workload
from j10ce.policy.equipment import UNMEASURED
from j10ce.policy.profiles import canonical, may_choose
from j10ce.policy.validation import syntax
from j10ce.policy.validation.validate import given, validate

LONGEST_NAME: Final = 63  # of a workload of this host: it becomes part of a cgroup's and a unit's name


class Caller(NamedTuple):
    """The peer of a connection, as the kernel vouches for it."""

    pid: int
    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    @property
    def administrator(self) -> bool:
        return self.uid == 0

    @property
    def trusted(self) -> bool:
        """Root, or the very user that the agent runs as: the agent has nothing that they have not."""
        return self.uid in (0, os.geteuid())


class Common(Strict, frozen=True, kw_only=True):
    """What placing and adopting have in common."""

    name: Word = ""
    namespace: Word = "default"
    pid: Number = 0
    profile: Word = ""
    labels: Labels = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    requests: Minimum = Minimum()
    limits: Minimum = Minimum()
    minimum: Minimum = Minimum()


class AdmitRequest(Common, frozen=True, kw_only=True):
    """Put a process under QoS: its cgroup is made, every knob is written, then it is moved in."""


class AdoptRequest(Common, frozen=True, kw_only=True):
    """Manage what runs already, where it is: exactly one of pid, unit and cgroup."""

    unit: Word = ""
    cgroup: Word = ""
    insist: bool = False  # on the minimum: where it is not upheld, nothing is adopted and nobody is moved


def who(caller: Caller, named: str) -> str:
    """Root may name the person behind it; anyone else is who the kernel says."""
    if caller.administrator and named:
        return named
    try:
        return pwd.getpwuid(caller.uid).pw_name
    except KeyError:
        return f"uid {caller.uid}"


def check_names(namespace: str, name: str, labels: Mapping[str, str]) -> None:
    """Raises Invalid with every finding."""
    findings = [*syntax.namespace("namespace", namespace), *syntax.name("name", name, most=LONGEST_NAME)]
    findings += syntax.labels("labels", labels)
    if namespace == HOST_NAMESPACE:
        findings.append(Finding("namespace", namespace, "is for hostApplications of a NodeStrategy", "use another"))
    if findings:
        raise Invalid(findings, "workload")


def check_amounts(asked: WorkloadObject) -> None:
    """Minimums, requests and limits agree, by the rule for objects; raises Invalid."""
    wrong = [f._replace(path=f.path.removeprefix("spec.")) for f in validate(asked) if f.path.startswith("spec.")]
    if wrong:
        raise Invalid(wrong, "workload")


def check_measured(asked: WorkloadObject, node: NodeFacts) -> None:
    """A percentage is of something that this machine knows; raises Invalid with every one that is not."""
    findings = [
        Finding(f"{section}.{resource}", str(q), *UNMEASURED[resource])
        for section in ("requests", "limits", "minimum")
        for resource, q in given(getattr(asked.spec, section))
        if q.percent and not node.capacity[RESOURCES.index(resource)]
    ]
    if findings:
        raise Invalid(findings, "workload")


def check_profile(name: str, namespace_labels: Mapping[str, str], profiles: Iterable[QoSProfile]) -> None:
    """The profile exists and this namespace may run under it."""
    if not name:
        return
    known = {p.metadata.name: p for p in profiles}
    profile = known.get(canonical(name))
    if profile is None:
        raise Invalid([Finding("profile", name, "unknown profile", one_of(name, sorted(known)))], "workload")
    if not may_choose(profile, namespace_labels):
        raise Denied(f"profile {name} is for root alone on this host, in whatever namespace; ask root to place it")


def own_process(pid: int, caller: Caller) -> Process:
    """The process exists, is the caller's, and is one that may be managed at all."""
    if pid == 1:
        raise Denied("process 1 is never managed: it is the init of this machine")
    if pid == os.getpid():
        raise Denied(f"process {pid} is this agent, which protects itself")
    candidate = process(pid)
    if candidate is None:
        raise NotFound(f"there is no process {pid}")
    if not caller.administrator and candidate.uid != caller.uid:
        raise Denied(f"process {pid} belongs to uid {candidate.uid}, not to uid {caller.uid}")
    if candidate.kernel_thread:
        raise Denied(f"process {pid} ({candidate.command}) is a kernel thread; those are never touched")
    return candidate


def check_movable(candidate: Process, top: str, caller: Caller) -> None:
    """Moving a process takes it from its owner; the caller's own child may be moved, but out of no container."""
    owner = owner_of(candidate, top)
    forked_for_us = candidate.parent == caller.pid and not candidate.container
    if owner and not forked_for_us:
        unit = f" (adopt --unit {owner})" if owner.endswith(".service") else ""
        raise Denied(f"process {candidate.pid} belongs to {owner}; adopt that instead of moving a process out{unit}")


def check_leaving(candidate: Process, top: str, caller: Caller, known: Iterable[Workload]) -> None:
    """Whoever placed a process meant its limits and its tier: its own user sheds them by no other name."""
    if caller.administrator or not is_ours(candidate, top):
        return
    for w in known:
        here = w.handle.path and any(f"{p}/".startswith(f"{w.handle.path}/") for p in candidate.cgroups.values())
        if here and w.uid != caller.uid:
            name = f"{w.namespace}/{w.name}"
            why = f"placed by uid {w.uid}: it stays until {name} is forgotten"
            raise Denied(f"process {candidate.pid} is in {name}, {why}")


def owner_of(candidate: Process, top: str) -> str:
    """Whose process it is and stays; empty for one that may be moved, as those in our own cgroups may."""
    return "" if is_ours(candidate, top) else candidate.belongs_to


def is_ours(candidate: Process, top: str) -> bool:
    return any(_below(path, top) for path in candidate.cgroups.values())


def family(candidate: Process, top: str, caller: Caller) -> list[Process]:
    """A process and all that it started, but for those that are placed already, another's, or not the caller's."""
    below = (p for p in descendants(candidate.pid) if not is_ours(p, top) and not p.belongs_to and p.pid != os.getpid())
    return [candidate, *(p for p in below if caller.administrator or p.uid == caller.uid)]


def _below(path: str, top: str) -> bool:
    return f"{path}/".startswith(tuple(f"{ours}{end}" for ours in (top, f"{top}_{APART}") for end in ("/", ".slice/")))


def check_cgroup(path: str, top: str, caller: Caller) -> str:
    """The cgroup may be adopted by the caller; returns its path without a leading slash."""
    path = inside(path.strip("/"))
    agent = process(os.getpid())
    own = agent.cgroups.values() if agent else ()
    if not path:
        raise Denied("the root cgroup is never managed")
    if path in own:
        raise Denied(f"{path} is the agent's own cgroup")
    if _below(path, top):
        raise Denied(f"{path} is managed already: it is part of {top}")
    if any(mine.startswith(f"{path}/") for mine in own):
        raise Denied(f"{path} holds the agent itself")
    if "init.scope" in path.split("/"):
        raise Denied(f"{path} is never touched: it holds systemd itself")
    if not caller.administrator:
        raise Denied(f"only root may adopt a cgroup or a unit; uid {caller.uid} may adopt its own processes")
    return path


def check_free(handle: Handle, known: Iterable[Workload]) -> None:
    """Nothing is promised twice: neither a cgroup under two names, nor one inside another."""
    for other in known:
        mine, theirs, name = handle.path, other.handle.path, f"{other.namespace}/{other.name}"
        if not mine or not theirs:
            continue
        if mine == theirs:
            raise Denied(f"{mine} is managed already, as {name}")
        if f"{mine}/".startswith(f"{theirs}/") or f"{theirs}/".startswith(f"{mine}/"):
            where = "inside" if len(mine) > len(theirs) else "above"
            raise Denied(f"{mine} is {where} {theirs}, which is managed already, as {name}; forget that one first")


def where_it_runs(candidate: Process) -> Handle:
    """A handle for what stays where it is: one path, and where v1 hierarchies differ, one each."""
    main = candidate.cgroups.get(UNIFIED) or next((p for c in IN_USE if (p := candidate.cgroups.get(c))), "")
    differ = {c: p for c in (*IN_USE, UNIFIED) if (p := candidate.cgroups.get(c)) is not None and p != main}
    for controller in (FREEZER, IO):
        if not differ.get(controller, main):
            del differ[controller]  # nobody put it into any: the root is no cgroup of its own
    unit = candidate.belongs_to if candidate.belongs_to.endswith(".service") else ""
    return Handle(path=main, paths=differ, unit=unit, made=False)
