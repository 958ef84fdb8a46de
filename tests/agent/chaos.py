"""A host on which everything happens at random: arrivals, ends, edits, holds, orders, faults, meddlers, kills."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.ring import Report
from j10ce.model.kinds import MemorySection, MinimalReservationPolicy, NodeQoSSpec, NodeStrategy, QoSProfile, Tier
from j10ce.model.knob import CGROUP_KNOBS, ROOT, Setting, TargetId, Value, group
from j10ce.model.plan import Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import TRUSTED_LABEL, builtin
from j10ce.testing import build
from tests.agent import chance
from tests.agent.whole_ring import Ring
from tests.kernel.rig import Killed, Mortal, machine

GI: Final = float(2**30)
CONTROLLERS: Final = frozenset(k.controller for k in CGROUP_KNOBS.values())
STRANGERS: Final = {  # nobody manages them: nothing of them may ever change
    "user.slice": {"cpu.weight": 2048.0, "memory.low": 4096.0},
    "system.slice/cron": {"cpu.max": 150_000.0},
    "batch": {"cpu.weight": 512.0, "memory.min": GI / 4},
}
ADOPTABLE: Final = {
    "system.slice/db": {"cpu.weight": 512.0, "cpu.max": 300_000.0, "memory.min": GI / 8},
    "system.slice/redis": {"cpu.weight": 4096.0},
    "svc/deep/web": {"memory.low": 8192.0, "memory.max": 4 * GI},
    "alone": {"cpu.max": 250_000.0, "cpu.max.burst": 50_000.0},
}
PODS: Final = {  # (of the pod, of its containers)
    "kubepods/pod1": ({"cpu.max": 200_000.0, "cpu.weight": 512.0, "memory.max": 4 * GI}, {"cpu.max": 100_000.0}),
    "kubepods/besteffort/pod2": ({"cpu.weight": 2.0}, {"cpu.weight": 2.0}),
}
CONTAINERS: Final = ("c1", "c2")
PROFILES: Final = ("ls", "burstable", "be", "be", "gold", "lsr", "lse", "system", "")
KNOBS_HELD: Final = ("cpu.weight", "cpu.max", "memory.min", "memory.max", "memory.high", "cpu.idle", "cgroup.freeze")


class Chaos:
    def __init__(self, folder: Path, seed: int, *, harsh: bool) -> None:
        """`harsh`: also faults, meddlers, vanishing cgroups and kills."""
        self.random = random.Random(seed)
        self.harsh = harsh
        self.folder = folder
        self.fake = Mortal(self.random.choice(["v1", "v2"]))
        self._furnish()
        self.before = machine(self.fake)
        self.enabled = {path: here.enabled for path, here in self.fake.cgroups.by_path.items()}
        self.ring = Ring(folder, fake=self.fake)
        self.known: dict[str, Workload] = {}
        self.gold, self.policies = True, dict[str, MinimalReservationPolicy]()
        self.strategies: tuple[NodeStrategy, ...] = ()
        self.disarmed = False
        self.theirs: set[tuple[str, str]] = set()  # (path, knob) that a meddler has written
        self.contested: set[Setting] = set()
        self.inherited: dict[str, float] = {}  # memory.min that was yet to be given back when a cgroup got a new name
        self.pid = 1000
        self.named = 0
        acts = [self.place, self.place, self.leave, self.leave, self.adopt, self.edit, self.promise, self.hold]
        acts += [self.switch, self.order, self.tick, self.tick, self.late, self.restart]
        acts += [self.say, self.say, self.press, self.press, self.lend, self.pod, self.pod, self.remake]
        self.acts: list[Callable[[], Report]] = [
            *acts,
            *([self.fail, self.meddle, self.vanish, self.kill] if harsh else []),
        ]

    def _furnish(self) -> None:
        self.fake.enable(ROOT, CONTROLLERS)
        inside = {f"{pod}/{name}": values for pod, (_, values) in PODS.items() for name in CONTAINERS}
        pods = {pod: values for pod, (values, _) in PODS.items()}
        for path, values in {**STRANGERS, **ADOPTABLE, **pods, **inside}.items():
            steps = path.split("/")
            for depth in range(1, len(steps)):
                above = group("/".join(steps[:depth]))
                self.fake.adopt(above, "/".join(steps[:depth]))
                self.fake.enable(above, CONTROLLERS)
            cgroups = self.fake.cgroups
            known = {k: cgroups.rounded(k, v) for k, v in values.items() if cgroups.support(k).ok}
            self.fake.adopt(group(path), path, known)
        self.fake.places = {ROOT: self.fake.places[ROOT]}

    # ------------------------------------------------------------------ what happens

    def step(self) -> Report:
        act = self.random.choice(self.acts)
        try:
            return act()
        except Killed:
            self.fake.lives = float("inf")
            return self.restart()

    def place(self) -> Report:
        self.named += 1
        self.pid += 1
        name = f"w{self.random.randrange(6)}" if self.random.random() < 0.5 else f"n{self.named}"
        if name in self.known:
            return self.tick()
        w = replace(self._described(name), handle=Handle(), pids=(self.pid,))
        return self._arrive(w)

    def adopt(self) -> Report:
        taken = {w.handle.path for w in self.known.values()}
        free = [p for p in ADOPTABLE if p not in taken and p in self.fake.cgroups.by_path]
        name = f"a{self.random.randrange(3)}"
        if not free or name in self.known:
            return self.tick()
        handle = Handle(path=self.random.choice(free), made=False)
        self.inherited[handle.path] = self._number(machine(self.fake)[handle.path].get("memory.min", 0.0))
        return self._arrive(replace(self._described(name), handle=handle))

    def pod(self) -> Report:
        """A kubelet has made one."""
        path = self.random.choice(sorted(PODS))
        name = path.rpartition("/")[2]
        if name in self.known or path not in self.fake.cgroups.by_path:
            return self.tick()
        inside = [n for n in CONTAINERS if f"{path}/{n}" in self.fake.cgroups.by_path]
        parts = chance.containers(self.random, path, inside, name == "pod1")
        w = replace(self._described(name), handle=Handle(path=path, made=False), parts=parts)
        if name == "pod1":
            w = replace(w, limits=build.ceiling("2", "4Gi"))
        self.inherited[path] = self._number(machine(self.fake)[path].get("memory.min", 0.0))
        return self._arrive(w)

    def remake(self) -> Report:
        """Its maker is about to write it, or has done so, or ends it, or describes it anew."""
        if not self.known:
            return self.tick()
        w = self._now(self.known[self.random.choice(sorted(self.known))])
        flag = self.random.choice(["resizing", "leaving", "overrides"])
        changed = {"overrides": chance.overrides(self.random)} if flag == "overrides" else {flag: not getattr(w, flag)}
        self.known[w.name] = w = replace(w, **changed)  # type: ignore[arg-type]
        self.ring.agent.change([WorkloadEvent("MODIFIED", w)], self.ring.instant(0.01))
        return self.tick()

    def say(self) -> Report:
        self.strategies = (chance.strategy(self.random),) if self.random.random() < 0.8 else ()
        return self._obey()

    def press(self) -> Report:
        """A while of one load: long enough to climb a ladder, and to come down again."""
        for _ in range(self.random.randint(1, 12)):
            report = self.tick()
            self.check(report)
        return self.tick()

    def lend(self) -> Report:
        self.ring.agent.lent = self.random.choice([{}, {"batch-cpu": 0.0}, {"batch-cpu": 4000.0, "mid-cpu": 500.0}])
        return self.tick()

    def leave(self) -> Report:
        """It ends, or it is forgotten and its processes go on."""
        if not self.known:
            return self.tick()
        w = self.known.pop(self.random.choice(sorted(self.known)))
        here = self.fake.cgroups.by_path.get(self._now(w).handle.path)
        if here is not None and self.random.random() < 0.7:
            here.pids.clear()
        return self.ring.leave(self._now(w))

    def edit(self) -> Report:
        self.gold = not self.gold
        return self._obey()

    def promise(self) -> Report:
        name = self.random.choice("pq")
        if name in self.policies:
            del self.policies[name]
        else:
            floor = {"cpu": self.random.choice(["200m", "1"]), "memory": self.random.choice(["256Mi", "2Gi"])}
            units = self.random.choice([0, 1])
            self.policies[name] = build.reservation(name, labels={"app": name}, units=units, **floor)  # type: ignore[arg-type]
        return self._obey()

    def hold(self) -> Report:
        if not self.known:
            return self.tick()
        target = self.random.choice(sorted(self.known.values(), key=lambda w: w.name)).target
        knob, until = self.random.choice(KNOBS_HELD), self.ring.wall + self.random.choice([5.0, 60.0])
        self.ring.agent.hold([build.hold(target, knob, expires=until)])
        return self.tick()

    def switch(self) -> Report:
        self.ring.agent.armed = not self.ring.agent.armed or self.random.random() < 0.7
        return self.tick()

    def order(self) -> Report:
        self.disarmed = self.random.random() < 0.3
        return self._obey()

    def tick(self) -> Report:
        if self.random.random() < 0.8:
            self.ring.agent.observer.measure(chance.readings(self.random, self.ring.agent.workloads.values()))  # type: ignore[attr-defined]
        return self.ring.tick(self.random.choice([0.5, 1.0, 5.0]))

    def late(self) -> Report:
        return self.ring.tick(31.0)

    def restart(self) -> Report:
        """Another process takes over: the journal, the cached workloads and the promises are all that is left."""
        known, old = [self._now(w) for w in self.known.values()], self.ring.agent
        self.fake.places = {ROOT: self.fake.places[ROOT]}
        self.ring.agent = fresh = self.ring.start()
        fresh.armed, fresh.holds, fresh.document = old.armed, old.holds, old.document
        fresh.lent = old.lent
        fresh.obey(old.document)
        fresh.promised = tuple(old.resolution.ledger) if old.resolution else ()
        if known:
            self.ring.arrive(*known)
        return self.tick()

    def fail(self) -> Report:
        self.fake.fail(*self.random.choices(["EBUSY", "EINVAL", "EACCES", "ENOSPC"], k=self.random.randint(1, 4)))
        return self.random.choice([self.place, self.leave, self.adopt, self.edit])()

    def meddle(self) -> Report:
        """Someone else writes what we wrote."""
        ours = sorted(s for s in self.ring.agent.kernel.originals if s.knob in ("cpu.weight", "cpu.max", "memory.low"))
        if ours:
            s = self.random.choice(ours)
            at = self.fake.places.get(s.target)
            if at is not None and at.path in self.fake.cgroups.by_path:
                value = {"cpu.weight": 333.0, "cpu.max": 123_000.0, "memory.low": 4096.0 * 7}[s.knob]
                self.fake.cgroups.hold(s.knob, self.fake.quantise(s, value), at.path)
                self.theirs.add((at.path, s.knob))
                self.contested.add(s)
        return self.late()

    def vanish(self) -> Report:
        """Someone else removes a cgroup, ours or not."""
        gone = self.random.choice([w.handle.path for w in map(self._now, self.known.values())] or [""])
        if gone:
            self.fake.vanish(gone)
        return self.tick()

    def kill(self) -> Report:
        self.fake.lives = float(self.random.randrange(12))
        report = self.random.choice([self.place, self.leave, self.adopt, self.edit, self.switch])()
        self.fake.lives = float("inf")
        return report

    # ------------------------------------------------------------------ what must hold

    def check(self, report: Report) -> None:
        for path in STRANGERS:
            assert machine(self.fake)[path] == self.before[path], path
        if self.ring.agent.resolution is not None and not any(knob == "memory.min" for _, knob in self.theirs):
            self._check_memory()
        assert not report.faults, report.faults
        self._check_spared(report)

    def _check_spared(self, report: Report) -> None:
        """Tier system gives nothing; who stands still has a reason, and nobody stands still for longer than that."""
        tiers = {t: e.tier for t, e in report.snap.entitlements.items() if e.chosen}
        assert all(tiers.get(a.target, Tier.SYSTEM) is not Tier.SYSTEM for a in report.plan.actions)
        verdicts = report.plan.verdicts
        stopped = {s for s, v in verdicts.items() if s.knob == "cgroup.freeze" and v.value == 1.0}
        assert all(tiers[s.target] is not Tier.SYSTEM for s in stopped)
        if report.cause == "tick" and not self.harsh:
            held = {h.setting for h in report.held}
            frozen = {Setting(t, "cgroup.freeze") for t in report.snap.workloads if self._frozen(t)}
            assert frozen <= stopped | held, frozen - stopped
            if report.armed and not self.ring.agent.document.spec.disarmed:
                # The kernel takes no weight of an idle group: one that an operator keeps idle has to wait for its own.
                waits = {s._replace(knob="cpu.weight") for s in held if s.knob == "cpu.idle"}
                refused = [c for c, _ in report.outcome.refused() if getattr(c, "setting", None) not in waits]
                assert refused == [], report.outcome.refused()
                self._check_floors(report)

    def _frozen(self, target: TargetId) -> bool:
        at = self.fake.places.get(target)
        return at is not None and at.path in self.fake.cgroups.by_path and self._value(at.path, "cgroup.freeze") == 1.0

    def _value(self, path: str, knob: str) -> float:
        return self._number(self.fake.cgroups.value(knob, path))

    def _check_floors(self, report: Report) -> None:
        """No cap of ours is below what was promised."""
        for target, e in report.snap.entitlements.items():
            at = self.fake.places.get(target)
            if not e.chosen or at is None or at.path not in self.fake.cgroups.by_path:
                continue
            caps = {"cpu.max": e.floor.cpu * 100.0, "memory.max": e.floor.memory, "memory.high": e.floor.memory}
            for knob, least in caps.items():
                if Setting(target, knob) in self.ring.agent.kernel.originals and self.fake.cgroups.support(knob).ok:
                    assert self._value(at.path, knob) >= least // 4096 * 4096 - 1, (target, knob, least)
            assert not (e.floor.cpu and self._frozen(target)), f"{target} stands still, and has a floor"

    def _check_memory(self) -> None:
        """The sum of memory.min in the kernel, by top-level cgroup, is no more than the book and what was there."""
        resolution = self.ring.agent.resolution
        assert resolution is not None
        tops = [p for p in self.fake.cgroups.by_path if p and "/" not in p]
        kept = sum(self._number(machine(self.fake)[p].get("memory.min", 0.0)) for p in tops)
        was = sum(self._number(self.before.get(p, {}).get("memory.min", 0.0)) for p in tops)
        had = sum(self._number(values.get("memory.min", 0.0)) for p, values in self.before.items() if "/" in p)
        now = {p: self._number(machine(self.fake).get(p, {}).get("memory.min", 0.0)) for p in self.inherited}
        self.inherited = {p: min(kept, now[p]) for p, kept in self.inherited.items()}
        had += sum(self.inherited.values())
        assert kept <= resolution.ledger.promised.memory + was + had + 4096.0 * 64

    def calm(self) -> Report:
        """Faults and holds are over, and it is armed: it settles, and then there is nothing left to do."""
        self.fake.faults.clear()
        self.disarmed, self.ring.agent.armed = False, True
        self.ring.agent.hold([])
        report = self._obey()
        for _ in range(12):
            report = self.ring.tick(31.0)
        held = [p for p in self.fake.cgroups.by_path if p and self._value(p, "cgroup.freeze")]
        assert held == [], "nothing is measured, and somebody still stands still"
        return report

    def give_back(self) -> None:
        for here in self.fake.cgroups.by_path.values():
            here.pids.clear()
        refused = self.ring.agent.revert(self.ring.instant()).refused()
        unexplained = [(c, r) for c, r in refused if not self._meddled(c, r)]
        assert unexplained == [], unexplained
        there = machine(self.fake)
        assert {p for p in there if p.startswith("j10ce")} == set()
        for path, values in there.items():
            touched = {knob for at, knob in self.theirs if at == path}
            kept = {k: v for k, v in self.before[path].items() if k not in touched}
            assert {k: v for k, v in values.items() if k not in touched} == kept, (path, values, kept)
        assert {p: self.fake[p].enabled for p in there} == {p: self.enabled[p] for p in there}

    # ------------------------------------------------------------------ small things

    def _described(self, name: str) -> Workload:
        pick = self.random.choice
        fields: dict[str, object] = {"profile": pick(PROFILES), "labels": {"app": pick("pqr")}}
        fields |= {"min_cpu": pick([0, 0, "200m", "1"]), "min_memory": pick([0, 0, "256Mi", "1Gi", "5Gi"])}
        fields |= {"cpu": pick([0, "500m", "1"]), "memory": pick([0, "512Mi", "4Gi"])}
        fields |= {"cpu_limit": pick([0, "1", "2"]), "memory_limit": pick([0, "6Gi"])}
        fields |= {"namespace_labels": {TRUSTED_LABEL: "true"}, "priority": pick([None, 5000, 9000])}
        fields |= {"overrides": chance.overrides(self.random), "reclaimable": chance.lent(self.random)}
        return build.workload(name, **{k: v for k, v in fields.items() if v})  # type: ignore[arg-type]

    def _arrive(self, w: Workload) -> Report:
        self.known[w.name] = w
        return self.ring.arrive(w)

    def _now(self, w: Workload) -> Workload:
        """As the agent knows it."""
        return self.ring.agent.workloads.get(w.target, w)

    def _obey(self) -> Report:
        gold = build.profile("gold", "sensitive", memory=MemorySection(min_percent=80, low_percent=100))
        profiles: list[QoSProfile] = [*builtin(), *([gold] if self.gold else [])]
        spec = NodeQoSSpec(disarmed=self.disarmed)
        document = NodeDocument(
            node="node",
            profiles=tuple(profiles),
            policies=tuple(self.policies.values()),
            spec=spec,
            strategies=self.strategies,
        )
        self.ring.agent.obey(document)
        return self.tick()

    def _meddled(self, change: object, refused: Refused) -> bool:
        if not isinstance(change, ValueChange) or "someone else" not in refused.reason:
            return False
        s, at = change.setting, self.fake.places.get(change.setting.target)
        path = at.path if at else change.setting.target.removeprefix("group/")
        return s in self.contested or (path, s.knob) in self.theirs

    @staticmethod
    def _number(value: Value) -> float:
        assert isinstance(value, float | int)
        return float(value)


def run(folder: Path, seed: int, steps: int, *, harsh: bool) -> None:
    chaos = Chaos(folder, seed, harsh=harsh)
    for _ in range(steps):
        chaos.check(chaos.step())
    report = chaos.calm()
    chaos.check(report)
    assert report.plan.changes == (), report.plan.changes
    assert not report.outcome.refused()
    chaos.give_back()
