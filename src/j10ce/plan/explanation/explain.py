"""Why a setting has its value: who asked, who lost, what moved it, and what it was before us."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import UNSET, Struct

from j10ce.errors import Invalid, NotFound
from j10ce.model.controls.shapes import CGROUP, FILES
from j10ce.model.kinds import CacheSection, MemorySection, Tier
from j10ce.model.knob import KNOBS, ROOT, Deed, KnobRole, Setting, TargetId, Value, read_name, read_names, render
from j10ce.model.plan import Action, HeldSetting, Plan, Proposal, ValueChange, Verdict
from j10ce.model.resource import NOTHING, RESOURCES, spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement
from j10ce.plan.merge import LAPSED, number
from j10ce.policy.effect.effective import Effective
from j10ce.policy.effect.support import lacking
from j10ce.policy.lifetime import over
from j10ce.policy.validation.sections import OWN_CPUS
from j10ce.policy.validation.validate import unknown_knob

LIMITS: Final = "limits"  # the controller that asks for declared limits


class Wish(Struct, frozen=True):
    owner: str
    rank: str
    bound: str  # `wants`, `at least`, `at most`
    value: str
    reason: str

    @classmethod
    def of(cls, p: Proposal) -> Wish:
        bound = {"want": "wants"}.get(p.bound.value, p.bound.value.replace("_", " "))
        return cls(p.owner, p.rank.name.lower(), bound, render(p.setting.knob, p.value), p.reason)


class Above(Struct, frozen=True):
    """What an ancestor has of the same knob."""

    target: str
    value: str
    ours: bool
    why: str = ""  # who decided it there; empty: nobody asks for it


class SettingExplanation(Struct, frozen=True):
    knob: str
    meaning: str
    v2: str  # file names; empty where a cgroup has none
    v1: str
    via: str  # where it is written on this machine
    now: str  # empty: never read
    planned: str = ""  # the value that the plan writes, where it is another one
    original: str = ""  # before us; empty: not changed by us
    winner: Wish | None = None
    losers: tuple[Wish, ...] = ()
    clamps: tuple[str, ...] = ()  # in order, what moved the winner's value
    held: str = ""
    problem: str = ""  # why it cannot be set here, and what is done instead
    lacks: str = ""  # the same, each for itself
    instead: str = ""
    above: tuple[Above, ...] = ()


class Explanation(Struct, frozen=True):
    target: str
    cgroup: str
    summary: str = ""  # what it gets and was promised, in one sentence
    profile: str = ""
    tier: str = ""
    floor: str = ""
    sources: tuple[str, ...] = ()
    effective: str = ""  # whether the floor really holds
    protected: str = ""  # how much memory of the floor is in use and kept at this moment
    notes: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()  # what is done to it at this moment besides setting values
    knob: str = ""  # the one that was asked for; empty: an overview
    settings: tuple[SettingExplanation, ...] = ()


def explain(
    target: TargetId,
    knob: str | None,
    snap: Snapshot,
    plan: Plan,
    *,
    originals: Mapping[Setting, Value] | None = None,
    holds: Iterable[HeldSetting] = (),
    effective: Effective | None = None,
) -> Explanation:
    """Raises NotFound for a target that is not here, Invalid for a knob that does not exist."""
    group = snap.groups.get(target)
    if group is None and target not in snap.pieces:
        raise NotFound(f"{target} is not on this machine")
    known = {s.name for s in plan.verdicts if s.target == target}
    asked = _asked(knob, known) if knob is not None else None
    teller = _Teller(snap, plan, originals or {}, {h.setting: h for h in holds if not over(h, snap.wall)})
    entitled = snap.entitlements.get(target)
    lacked = {k for k in _called_for(entitled) if not snap.supports(k)} if entitled else set()
    shown = asked or [k for k in (*KNOBS, *sorted(known - KNOBS.keys())) if k in known | lacked]
    return Explanation(
        target=target,
        cgroup=group.path if group else "",
        summary=_summary(target, entitled, effective),
        profile=entitled.profile if entitled else "",
        tier=entitled.tier.value if entitled else "",
        floor=str(entitled.floor) if entitled and entitled.floor != NOTHING else "",
        sources=tuple(f"{s.object}: {s.why}" for s in entitled.sources) if entitled else (),
        effective=_effective_text(entitled, effective),
        protected=_protected_text(entitled, effective),
        notes=(*map(str, entitled.notes), *_unable(entitled, snap)) if entitled else (),
        deeds=tuple(_deed(a) for a in plan.actions if a.target == target),
        knob=knob or "",
        settings=tuple(teller.setting(Setting(target, *(read_name(k) or (k, "")))) for k in shown),
    )


def _asked(knob: str, known: Collection[str]) -> list[str]:
    """The settings that a name means here: the bare name of a knob that has several values means all of them."""
    if knob in known:
        return [knob]
    named = [Setting(ROOT, *one) for one in read_names(knob)]
    if not named:
        raise Invalid([unknown_knob("knob", knob)], "question")
    read = {n: read_name(n) for n in sorted(known)}
    several = [n for s in named if not s.instance for n, one in read.items() if one and one[0] == s.knob]
    return several or [s.name for s in named]


def raised_limits(target: TargetId, plan: Plan) -> list[str]:
    """Limits of a workload that are not set as they were asked for, each with the reason."""
    notes = []
    for s, verdict in plan.verdicts.items():
        asked = verdict.winner
        cap = s.knob in KNOBS and KNOBS[s.knob].role is KnobRole.CAP
        if s.target != target or not cap or asked is None or asked.owner != LIMITS:
            continue
        if isinstance(asked.value, float | int) and number(verdict.value) > number(asked.value):
            moved = verdict.clamps[-1] if verdict.clamps else f"raised to {render(s.knob, verdict.value)}"
            notes.append(f"{s.knob}: {asked.reason} {moved}")
    return notes


def _called_for(e: Entitlement) -> Iterator[str]:
    """What a workload's floor, limits and profile need, whether this machine has it or not. (UNSET is false.)"""
    cpu, memory = e.cpu, e.memory
    needs = {
        "cpu.weight": e.floor.cpu > 0,
        "cpu.idle": cpu.idle,
        "cpu.max": e.ceiling.cpu != math.inf,
        "cpu.max.burst": e.ceiling.cpu != math.inf and bool(cpu.burst),
        "cpuset.cpus": cpu.pinning in OWN_CPUS,
        "memory.min": e.floor.memory > 0 or bool(memory.min_percent),
        "memory.low": bool(memory.low_percent),
        "memory.high": bool(memory.throttling_percent),
        "memory.max": e.ceiling.memory != math.inf,
        "memory.oom.group": bool(memory.oom_group),
        "memory.wmark_ratio": bool(memory.watermark_percent),
        "memory.wmark_scale_factor": memory.watermark_scale is not UNSET,
        "memory.wmark_min_adj": bool(memory.watermark_adjust),
        "memory.priority": bool(memory.kernel_priority),
        "memory.use_priority_oom": bool(memory.kernel_priority_oom),
        "memory.pagecache_limit.size": _limits_cache(memory),
        "memory.pagecache_limit.sync": bool(memory.page_cache_sync),
        "oom.score_adj": bool(memory.oom_priority),
        "resctrl.group": e.cache != CacheSection(),
        "sched.cookie": cpu.core_sched,
        "sched.realtime": cpu.latency == "realtime",
        "net.egress.floor": e.egress.floor > 0,
        "net.egress.ceil": e.egress.ceiling != math.inf,
        "net.egress.priority": bool(e.network.class_),
        "net.ingress.floor": e.ingress.floor > 0,
        "net.ingress.ceil": e.ingress.ceiling != math.inf,
    }
    return (knob for knob, needed in needs.items() if needed and e.chosen)


def _unable(e: Entitlement, snap: Snapshot) -> Iterator[str]:
    """Deeds that its profile asks for and this machine cannot do."""
    memory, support = e.memory, snap.support.get(Deed.RECLAIM.value)
    asked = {
        "memory.reclaim": memory.reclaim.enabled is True,
        "memory.watermarkPercent": bool(memory.watermark_percent) and not snap.supports("memory.wmark_ratio"),
        "memory.pageCacheLimit": _limits_cache(memory) and not snap.supports("memory.pagecache_limit.size"),
    }
    fields = ", ".join(name for name, wanted in asked.items() if wanted and e.chosen)
    if fields and (support is None or not support.ok):
        yield f"{fields}: nothing is reclaimed here: needs {support.needs if support else 'another kernel'}"
    elif fields and e.tier is Tier.SYSTEM:
        yield f"{fields}: nothing is ever reclaimed from tier system"


def _limits_cache(memory: MemorySection) -> bool:
    return memory.page_cache_limit is not UNSET and memory.page_cache_limit.amount > 0


def _deed(action: Action) -> str:
    amount = f" {spell('memory', int(action.amount))}" if action.deed is Deed.RECLAIM else ""
    done = "" if action.enforced else " (proposed only)"
    return f"{action.deed.value}{amount}{done}, {action.owner}: {action.reason}"


def _summary(target: TargetId, entitled: Entitlement | None, judged: Effective | None) -> str:
    """For whoever has time for one sentence; empty where nothing is promised."""
    if judged is None or entitled is None or entitled.floor == NOTHING:
        return ""
    name, floor = target.rpartition("/")[2], entitled.floor
    said = []
    if floor.cpu:
        gets = f"{name} gets {_cpus(judged.cpu)} CPU if everyone wants it"
        said.append(f"{gets}; promised {_cpus(floor.cpu)}: {_verdict(judged.cpu_reason)}")
    if floor.memory:
        keeps = f"{name} keeps {spell('memory', min(judged.memory, floor.memory))} of memory when it runs short"
        said.append(f"{keeps}; promised {spell('memory', floor.memory)}: {_verdict(judged.memory_reason)}")
    for resource, rate in judged.rates.items():
        promised = spell(resource, floor[RESOURCES.index(resource)])
        gets = f"{name} gets {spell(resource, rate.amount)} of {resource} if everyone wants it"
        said.append(f"{gets}; promised {promised}: {_verdict(rate.reason)}")
    return "\n".join(said)


def _cpus(millicores: float) -> str:
    """Rounded down: what is said to be there is there."""
    return f"{math.floor(millicores / 10) / 100:g}"


def _verdict(reason: str) -> str:
    return "does not hold" if reason else "holds"


def _effective_text(entitled: Entitlement | None, judged: Effective | None) -> str:
    if judged is None or entitled is None or entitled.floor == NOTHING:
        return ""
    if judged.holds:
        return "the floor holds"
    parts = judged.rows()
    return "; ".join(f"{k} {spell(k, int(got))} of {spell(k, want)}: {why}" for k, want, got, why in parts if why)


def _protected_text(entitled: Entitlement | None, judged: Effective | None) -> str:
    """A floor protects what is charged to the cgroup: pages that another one read first are charged there."""
    if judged is None or entitled is None or not entitled.floor.memory:
        return ""
    now, floor, used = (spell("memory", n) for n in (judged.memory_now, entitled.floor.memory, judged.memory_used))
    return f"now {now} of {floor}; {used} are charged to its cgroup"


class _Teller:
    def __init__(
        self, snap: Snapshot, plan: Plan, originals: Mapping[Setting, Value], holds: Mapping[Setting, HeldSetting]
    ) -> None:
        self.snap = snap
        self.plan = plan
        self.originals = originals
        self.holds = holds
        self.changes = {c.setting: c for c in plan.changes if isinstance(c, ValueChange)}

    def setting(self, s: Setting) -> SettingExplanation:
        k = KNOBS.get(s.knob)
        verdict = self.plan.verdicts.get(s)
        support = self.snap.support.get(s.knob)
        winner = self._winner(verdict) if verdict else None
        lack = None if self.snap.supports(s.knob) else lacking(self.snap, s.knob)
        return SettingExplanation(
            knob=s.name,
            meaning=k.meaning if k else "",
            v2=s.knob if k is None or k.on in (CGROUP, FILES) else "",
            v1=k.v1 if k else "",
            via=support.via if support else "",
            now=self._shown(s, self.snap.settings),
            planned=render(s.knob, self.changes[s].new) if s in self.changes else "",
            original=self._shown(s, self.originals),
            winner=Wish.of(winner) if winner else None,
            losers=tuple(Wish.of(p) for p in verdict.others if p != verdict.by and p not in verdict.moved_by)
            if verdict
            else (),
            clamps=verdict.clamps if verdict else (),
            held=self._held(s, verdict),
            problem=str(lack) if lack else "",
            lacks=lack.why if lack else "",
            instead=lack.instead if lack else "",
            above=tuple(self._above(s)),
        )

    def _winner(self, verdict: Verdict) -> Proposal | None:
        """A wish that has lapsed decides nothing where something else moved the value."""
        standing = next((p for p in verdict.others if p.value == verdict.value), None)  # a bound that it stands at
        winner = verdict.winner or verdict.by or standing
        return None if winner and winner.owner == LAPSED and verdict.clamps else winner

    def _shown(self, s: Setting, values: Mapping[Setting, Value]) -> str:
        return render(s.knob, values[s]) if s in values else ""

    def _held(self, s: Setting, verdict: Verdict | None) -> str:
        hold = self.holds.get(s)
        if hold is None or verdict is None or not verdict.held:
            return verdict.held if verdict else ""
        return f"{verdict.held}, for {(hold.expires - self.snap.wall) / 60:.0f} min more"

    def _above(self, s: Setting) -> Iterable[Above]:
        for up in self.snap.groups.ancestors(s.target):
            there = Setting(up, s.knob, s.instance)
            if up == ROOT or not (value := self._shown(there, self.snap.settings)):
                continue
            verdict = self.plan.verdicts.get(there)
            decided = self._winner(verdict) if verdict else None
            why = f"{decided.owner}: {decided.reason}" if decided else ""
            yield Above(up, value, self.snap.groups[up].owned, why)
