"""What the socket's routes do: checks first, then one change of the ring, then what must be remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import structlog
from msgspec.structs import replace

from j10ce.adapters.static import StaticAdapter
from j10ce.agent import holds as holding
from j10ce.agent import objects, place, views, whatif
from j10ce.agent.cache import Cache, LocalHolds, Orders, Placed
from j10ce.agent.config import AgentConfig
from j10ce.agent.holds import HoldRequest
from j10ce.agent.loop import Report
from j10ce.agent.place import AdoptRequest, Caller, Common, PlaceRequest
from j10ce.agent.places import Places
from j10ce.agent.report import capabilities
from j10ce.agent.shell import Shell, Stop
from j10ce.errors import Denied, Finding, Invalid, NotFound, QosError, Unreachable
from j10ce.model import kinds, knob, schema
from j10ce.model.kinds import Hold
from j10ce.model.knob import TargetId
from j10ce.model.plan import Applied, Gone, Join, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.plan.hold import hold_problem

log = structlog.get_logger()
MOST_RELEASED: Final = 1000  # remembered over a restart


class Operations:
    def __init__(self, shell: Shell, local: StaticAdapter, places: Places, cache: Cache, config: AgentConfig) -> None:
        self.shell = shell
        self.local = local
        self.places = places
        self.cache = cache
        self.config = config
        self._remembered = {w.target: w for w in local.known()}
        self.reload: Callable[[], Awaitable[dict[str, Any]]]
        self.handed_over = False
        self.unwritable = ""  # why nothing can be written on this machine
        self.server: Callable[[], str] = lambda: "none"  # how the control plane is reached

    @property
    def report(self) -> Report:
        if self.shell.report is None:
            raise Unreachable("the ring has not run yet; ask again in a second")
        return self.shell.report

    # ------------------------------------------------------------------ workloads

    async def place(self, request: PlaceRequest, caller: Caller) -> dict[str, Any]:
        workload = self._workload(request, request.name, caller, Handle())
        if request.pid:
            place.check_movable(place.own_process(request.pid, caller), caller)
            workload = replace(workload, pids=(request.pid,))
        return await self._bring_in(workload)

    async def adopt(self, request: AdoptRequest, caller: Caller) -> dict[str, Any]:
        given = [name for name in ("pid", "unit", "cgroup") if getattr(request, name)]
        if len(given) != 1:
            raise Invalid([Finding("", given or None, "exactly one is wanted", "give pid, unit or cgroup")], "request")
        if request.pid:
            return await self._adopt_process(request, caller)
        if request.unit:
            handle = await self.shell.on_ring(self.places.unit, request.unit)
        else:
            handle = self.places.cgroup(place.check_cgroup(request.cgroup, self.config.top, caller))
        place.check_cgroup(handle.path, self.config.top, caller)
        place.check_free(handle, self.local.known())
        name = request.name or _name_from(request.unit or handle.path)
        return await self._bring_in(self._workload(request, name, caller, handle))

    async def _adopt_process(self, request: AdoptRequest, caller: Caller) -> dict[str, Any]:
        """A process of a service stays where it is, and its unit is managed; any other one is moved into a place."""
        found = place.own_process(request.pid, caller)
        name = request.name or f"{_name_from(found.command)}-{found.pid}"
        if not found.belongs_to:
            return await self._bring_in(replace(self._workload(request, name, caller, Handle()), pids=(request.pid,)))
        handle = place.where_it_runs(found)
        place.check_cgroup(handle.path, self.config.top, caller)
        place.check_free(handle, self.local.known())
        return await self._bring_in(self._workload(request, name, caller, handle))

    def _workload(self, request: Common, name: str, caller: Caller, handle: Handle) -> Workload:
        place.check_names(request.namespace, name, request.labels)
        profiles = self.shell.agent.document.profiles
        place.check_profile(request.profile, objects.namespace_labels(request.namespace, caller.uid), profiles)
        meta = kinds.Meta(
            name=name, namespace=request.namespace, labels=place.labelled(request.profile, request.labels)
        )
        spec = kinds.WorkloadSpec(requests=request.requests, limits=request.limits, minimum=request.minimum)
        wall = self.shell.clock.read().wall
        told = kinds.Workload(metadata=meta, spec=spec)
        facts = self.shell.agent.observer.facts
        return place.chosen(objects.from_object(told, facts, handle=handle, uid=caller.uid, since=wall), profiles)

    async def _bring_in(self, workload: Workload) -> dict[str, Any]:
        """Tell the adapter, wait for the ring, undo it when the kernel would not have it."""
        target = workload.target
        self.local.add(workload)
        report = await self.shell.settled(target)
        if problem := _problem(report, target):
            self.local.remove(target)
            await self.shell.settled(target)
            raise problem
        placed = report.snap.workloads[target]
        self._remember(placed if report.outcome.dry else replace(placed, pids=()), report.snap.node.boot_id)
        return _answer(report, placed)

    def _remember(self, placed: Workload, boot_id: str) -> None:
        self.local.settle(placed)
        self._remembered[placed.target] = placed
        self.cache.keep_workload(
            Placed(
                workload=objects.to_object(placed),
                handle=placed.handle,
                inode=self.places.identity(placed.handle),
                boot_id=boot_id,
                uid=placed.uid,
                since=placed.since,
            )
        )

    def note_joined(self, report: Report) -> None:
        """Processes that waited for the agent to be armed are in."""
        for change, result in report.outcome.results:
            if isinstance(change, Join) and isinstance(result, Applied) and change.target in self.local:
                waiting = self.local.get(change.target)
                if waiting.pids and change.target in self._remembered:
                    placed = replace(report.snap.workloads[change.target], pids=())
                    self._remember(placed, report.snap.node.boot_id)

    def forget_ended(self) -> None:
        """Those that the adapter has seen end."""
        for target in self._remembered.keys() - self.local.targets():
            gone = self._remembered.pop(target)
            self.cache.drop_workload(gone.namespace, gone.name)

    async def remove(self, namespace: str, name: str, caller: Caller, *, ended: bool) -> dict[str, Any]:
        target = knob.workload(namespace, name)
        if target not in self.local:
            raise NotFound(f"there is no local workload {namespace}/{name}")
        owner = self.local.get(target).uid
        if not caller.administrator and caller.uid != owner:
            raise Denied(f"{namespace}/{name} was placed by uid {owner}")
        if ended:
            self.local.look(target)  # what the command left running stays managed until it ends too
        else:
            self.local.remove(target)
        if removed := target not in self.local:
            await self.shell.settled(target)
        return {"target": target, "removed": removed, "ended": ended}

    async def workloads(self) -> list[kinds.Workload]:
        return await self.shell.on_ring(views.workloads, self.report)

    # ------------------------------------------------------------------ looking

    def status(self) -> dict[str, Any]:
        agent = self.shell.agent  # an order to disarm counts at once, not from the next report on
        told = {"armed": agent.armed, "warnings": self.cache.warnings, "document": agent.document.hash}
        told["server"] = self.server()
        return views.status(self.report) | told | ({"unwritable": self.unwritable} if self.unwritable else {})

    async def top(self) -> dict[str, Any]:
        return await self.shell.on_ring(views.top, self.report)

    async def doctor(self) -> dict[str, Any]:
        return {"capabilities": capabilities(self.report), "notes": self.cache.warnings}

    async def explain(self, target: str, name: str | None) -> dict[str, Any]:
        kernel = self.shell.agent.kernel
        return await self.shell.on_ring(views.explanation, self.report, kernel, TargetId(target), name)

    async def journal(self) -> list[dict[str, Any]]:
        return await self.shell.on_ring(views.journal, self.shell.agent.kernel)

    async def drift(self) -> list[dict[str, Any]]:
        return views.drift(self.report)

    # ------------------------------------------------------------------ steering

    def holds(self) -> tuple[Hold, ...]:
        return holding.live(self.shell.agent.all_holds(), self.shell.clock.read().wall)

    async def hold(self, request: HoldRequest, caller: Caller) -> dict[str, Any]:
        hold = holding.from_request(request, self.shell.clock.read().wall)
        snap = self.report.snap
        for setting in holding.held([hold], snap.wall):
            problem = hold_problem(setting, snap)
            if problem and not request.breaks_reservation:
                raise Denied(f"{setting.setting} is not held: {problem}; --breaks-reservation holds it anyway")
        await self._keep_holds((*self.shell.agent.holds, hold), self.shell.agent.released)
        log.info("hold.made", target=request.target, knobs=request.knobs, uid=caller.uid, why=request.why)
        return {"name": hold.metadata.name, "expires": hold.spec.expires.isoformat(), "hold": schema.plain(hold)}

    async def release(self, target: str, knobs: frozenset[str]) -> dict[str, Any]:
        """A hold ends here at once, and upstream when it can be told; what stays of it is a hold of this host."""
        before = self.holds()
        kept, released = holding.without(before, target, knobs)
        ended = {h.metadata.name for h in before} - {h.metadata.name for h in kept}
        local = {h.metadata.name for h in self.shell.agent.holds}
        ours = [h for h in kept if h.metadata.name in local or h not in before]
        self.shell.agent.reread()  # whatever was edited under the hold is found at the next tick
        await self._keep_holds(ours, self.shell.agent.released | ended)
        return {"released": released}

    async def _keep_holds(self, holds: Iterable[Hold], released: Iterable[str]) -> None:
        live, ended = holding.live(holds, self.shell.clock.read().wall), tuple(sorted(released))
        await self.shell.on_ring(self.shell.agent.hold, live, ended)
        self.cache.keep_holds(LocalHolds(items=live, released=ended[-MOST_RELEASED:]))
        self.shell.wake.set()

    async def arm(self) -> dict[str, Any]:
        if self.unwritable:
            raise Denied(f"the agent stays unarmed: {self.unwritable}")
        self.cache.keep_orders(Orders(disarmed=False))
        self.shell.agent.armed = True
        self.shell.agent.reread()
        self.shell.wake.set()
        return {"armed": True}

    async def disarm(self, *, revert: bool) -> dict[str, Any]:
        self.shell.agent.armed = False  # at once: the ring looks before every run
        self.cache.keep_orders(Orders(disarmed=True))
        return {"armed": False} | (await self._revert(force=False) if revert else {})

    async def revert(self, *, force: bool) -> dict[str, Any]:
        """Everything back, and disarmed: else the next tick would write it all again."""
        await self.disarm(revert=False)
        return await self._revert(force=force)

    async def _revert(self, *, force: bool) -> dict[str, Any]:
        return views.reverted(await self.shell.on_ring(self.shell.agent.revert, force, self.shell.clock.read()))

    def stop(self, how: Stop, *, handover: bool) -> dict[str, Any]:
        self.handed_over = handover
        self.shell.stop(how)
        return {"stopping": True, "revert": how.revert}

    async def plan(self, raws: Iterable[object], node: dict[str, Any] | None) -> dict[str, Any]:
        report = self.report
        extra = [node] if node else []
        answer = whatif.whatif(
            [*raws, *extra],
            report.snap.node,
            wall=report.at.wall,
            document=self.shell.agent.document,
            present=report.snap,
            top=self.config.top,
            holds=report.held,
        )
        return whatif.as_plain(answer)


def _problem(report: Report, target: TargetId) -> QosError | None:
    """Why the workload could not be brought in: its cgroup was not made, or its process did not get in."""
    for change, result in report.outcome.results if not report.outcome.dry else ():
        if isinstance(change, ValueChange) or change.target != target:
            continue
        if isinstance(result, Refused):
            return Denied(result.reason)
        if isinstance(result, Gone):
            return NotFound(f"the process or the cgroup of {target} vanished")
    return None


def _answer(report: Report, w: Workload) -> dict[str, Any]:
    entitled = report.snap.entitlements[w.target]
    notes = [*entitled.notes]
    if not report.armed:
        notes.append("the agent is not armed: nothing was written")
    notes += [
        f"{change.setting.knob}: {result.reason}"
        for change, result in report.outcome.refused()
        if isinstance(change, ValueChange) and change.setting.target == w.target and report.armed
    ]
    return {
        "target": w.target,
        "namespace": w.namespace,
        "name": w.name,
        "cgroup": w.handle.path,
        "armed": report.armed,
        "profile": entitled.profile,
        "tier": entitled.tier.value,
        "entitlement": schema.plain(entitled),
        "notes": notes,
    }


def _name_from(text: str) -> str:
    last = text.rstrip("/").rpartition("/")[2].lower()
    for suffix in (".service", ".scope", ".slice"):
        last = last.removesuffix(suffix)
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in last).strip("-")[:40] or "workload"
