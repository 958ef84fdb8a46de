"""A small machine for plan tests: a fake kernel, a tree with tiers and an adopted service, a journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from j10ce.model.knob import CGROUP_KNOBS, ROOT, KnobRole, Setting, TargetId, Value, group
from j10ce.model.plan import Applied, Bound, Change, Gone, HeldSetting, Plan, Proposal, Rank, Refused, ValueChange
from j10ce.model.snapshot import Foreign, Groups, Snapshot
from j10ce.model.workload import Entitlement, Workload
from j10ce.plan.arbiter import arbitrate
from j10ce.sim.cgroups import Version, cpuset, number
from j10ce.testing import build
from j10ce.testing.fake_kernel import FakeKernel

WEB = build.workload("web")
API = build.workload("api")
CRUNCH = build.workload("crunch")
DB = build.workload("db", handle=build.handle("system/db"))  # adopted
TIERS = {WEB.target: "sensitive", API.target: "sensitive", CRUNCH.target: "besteffort", DB.target: "reserved"}
TARGETS = (*TIERS, group("j10ce"), group("j10ce/sensitive"), group("j10ce_besteffort"), group("system"))


def wish(
    target: TargetId,
    knob: str,
    value: Value,
    bound: Bound = Bound.WANT,
    *,
    owner: str = "test",
    rank: Rank = Rank.POLICY,
    reason: str = "because",
) -> Proposal:
    return Proposal(Setting(target, knob), bound, value, owner, rank, reason)


def hold(target: TargetId, knob: str, value: Value | None = None, **fields: bool) -> HeldSetting:
    return HeldSetting(Setting(target, knob), value, build.WALL + 600, "alice", "incident 42", **fields)


class World:
    def __init__(
        self,
        version: Version = "v2",
        workloads: Iterable[Workload] = (WEB, API, CRUNCH, DB),
        *,
        floors: dict[TargetId, tuple[build.Amount, build.Amount]] | None = None,
        made: bool = True,
        through: str = "kernel",
        foreign: dict[TargetId, tuple[Foreign, ...]] | None = None,
        used: dict[TargetId, float] | None = None,
    ) -> None:
        self.through = through  # `kernel`: its bare rules; `back end`: which moves companions along
        self.kernel = FakeKernel(version)
        self.workloads = {w.target: w for w in workloads}
        self.floors = floors or {}
        self.foreign = foreign or {}  # neighbours that nobody manages, by the group that they are in
        self.journal: dict[Setting, Value] = {}
        self.epoch = 0
        self.node = build.node(cpus=4, memory="8Gi")
        self._populate(made)
        for target, size in (used or {}).items():
            self.kernel[self.kernel.places[target].path].memory_current = size

    def _populate(self, made: bool) -> None:
        everything = frozenset(k.controller for k in CGROUP_KNOBS.values())
        self.kernel.enable(ROOT, everything)
        self.kernel.adopt(group("system"), "system")
        tree = self.tree()
        for target in tree.from_top():
            here = tree[target]
            if here.path and (made or not here.owned):
                self.kernel.adopt(target, here.path)
            if here.path in self.kernel.cgroups.by_path and tree.children.get(target):
                self.kernel[here.path].enabled = everything

    def tree(self) -> Groups:
        plain = build.tree(self.workloads.values(), self.entitlements())
        return Groups({t: self._seen(t, plain) for t in plain.by_target})

    def _seen(self, target: TargetId, plain: Groups) -> build.Group:
        here = msgspec.structs.replace(plain[target], foreign=self.foreign.get(target, ()))
        held = self.kernel.cgroups.by_path.get(here.path)
        if held is None:
            return msgspec.structs.replace(here, exists=False)
        return msgspec.structs.replace(here, enabled=held.enabled, memory_current=held.memory_current)

    def entitlements(self) -> dict[TargetId, Entitlement]:
        return {t: self._entitled(w) for t, w in self.workloads.items()}

    def _entitled(self, w: Workload) -> Entitlement:
        cpu, memory = self.floors.get(w.target, (0, 0))
        return build.entitlement(w, tier=TIERS.get(w.target, "standard"), floor_cpu=cpu, floor_memory=memory)

    def snapshot(self) -> Snapshot:
        self.epoch += 1
        snap = build.snapshot(
            *self.entitlements().values(),
            workloads=self.workloads.values(),
            groups=self.tree(),
            on=self.node,
            epoch=self.epoch,
        )
        return msgspec.structs.replace(snap, settings=self.kernel.settings(), support=self.kernel.knobs())

    def plan(self, *proposals: Proposal, holds: Iterable[HeldSetting] = ()) -> Plan:
        return arbitrate(proposals, self.snapshot(), holds, self.kernel.quantise, originals=self.journal)

    def apply(self, plan: Plan) -> Iterator[Change]:
        """Every change must be taken; yields after each one, so that the caller can look at the tree."""
        for change in plan.changes:
            if isinstance(change, ValueChange):
                self._journal(change.setting)
            answer = self._write_bare(change) if self.through == "kernel" else self.kernel.perform(change)
            assert isinstance(answer, Applied), (change, answer)
            if isinstance(change, ValueChange) and change.ends:
                assert self.kernel.read(change.setting, self.kernel.places[change.setting.target]) == change.new
                del self.journal[change.setting]
            yield change

    def _journal(self, s: Setting) -> None:
        before = self.kernel.read(s, self.kernel.places[s.target])
        assert before is not None, (s, "no such file")
        self.journal.setdefault(s, before)

    def _write_bare(self, change: Change) -> Applied | Refused | Gone:
        """The plan needs no help: the kernel itself takes every value."""
        if not isinstance(change, ValueChange):
            return self.kernel.perform(change)
        s, path = change.setting, self.kernel.places[change.setting.target].path
        value = self.kernel.quantise(s, change.new)
        objection = self.kernel.cgroups.objection(s.knob, value, path)
        assert objection is None, (change, objection)
        self.kernel.cgroups.hold(s.knob, value, path)
        return Applied(value)

    def settle(self, *proposals: Proposal, holds: Iterable[HeldSetting] = ()) -> Plan:
        plan = self.plan(*proposals, holds=holds)
        for _ in self.apply(plan):
            self.check()
        return plan

    def value(self, target: TargetId, knob: str) -> Value | None:
        return self.kernel.read(Setting(target, knob), self.kernel.places[target])

    def check(self) -> None:
        """Children fit their parents."""
        for path, here in self.kernel.cgroups.by_path.items():
            children = [self.kernel[c].values for c in self.kernel.cgroups.children(path)]
            if not path or not children:
                continue
            for knob in (k.name for k in CGROUP_KNOBS.values() if k.role is KnobRole.GUARANTEE):
                assert sum(number(c, knob) for c in children) <= number(here.values, knob), (path, knob)
            usable = self.kernel.cgroups.effective_cpus(path)
            assert all(cpuset(c) <= usable for c in children), (path, usable, children)
