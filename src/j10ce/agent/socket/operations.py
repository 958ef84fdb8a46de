"""What the socket's routes do: checks first, then one change of the ring, then what must be remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from j10ce.adapters.static import StaticAdapter
from j10ce.agent.cache import Cache, KeptWorkload, Orders
from j10ce.agent.config import AgentConfig
from j10ce.agent.report import traffic
from j10ce.agent.report.report import capabilities
from j10ce.agent.ring import objects, what_if
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.ring.in_force import in_force
from j10ce.agent.ring.ring import Report
from j10ce.agent.ring.runner import Shell, Stop
from j10ce.agent.socket import admission, answers, minimum
from j10ce.agent.socket.admission import AdmitRequest, AdoptRequest, Caller, Common
from j10ce.agent.socket.holding import Holding
from j10ce.agent.socket.left_limits import Limit
from j10ce.agent.socket.shortfall import unarmed
from j10ce.agent.socket.turns import Turns
from j10ce.agent.socket.whereabouts import Whereabouts
from j10ce.errors import Conflict, Denied, Finding, Invalid, NotFound, QosError, Unreachable, cut
from j10ce.kernel.process import Process, descendants
from j10ce.model import kinds, knob
from j10ce.model.kinds import Hold
from j10ce.model.knob import TargetId
from j10ce.model.plan import Applied, Gone, Join, Outcome, Plan, Refused, ValueChange
from j10ce.model.resource import NOTHING
from j10ce.model.workload import APART, Handle, Note, Workload
from j10ce.plan.explanation.explain import raised_limits

MOST_LOOKS: Final = 5  # at the children of an adopted process


class Operations:
    def __init__(
        self,
        shell: Shell,
        local: StaticAdapter,
        whereabouts: Whereabouts,
        cache: Cache,
        config: AgentConfig,
        unwritable: str = "",
        server: Callable[[], str] = lambda: "none",
    ) -> None:
        """`unwritable`: why nothing can be written on this machine. `server`: how the control plane is reached."""
        self.shell = shell
        self.local = local
        self.whereabouts = whereabouts
        self.cache = cache
        self.config = config
        self._remembered = {w.target: w for w in local.known()}
        self._planning = Turns()
        self._holding = Holding(shell, cache)
        self._unwritable = unwritable
        self._server = server

    @property
    def report(self) -> Report:
        if self.shell.report is None:
            raise Unreachable("the ring has not run yet; ask again in a second")
        return self.shell.report

    # ------------------------------------------------------------------ workloads

    async def admit(self, request: AdmitRequest, caller: Caller) -> dict[str, Any]:
        workload = self._workload(request, request.name, caller, Handle())
        left: list[Limit] = []
        if request.pid:
            process = admission.own_process(request.pid, caller)
            admission.check_movable(process, self.config.top, caller)
            self._check_leaving(process, caller)
            workload = replace(workload, pids=(process.pid,), proofs=(process.proof,))
            left = self._left_limits(process)
        self._check_nobody_else(workload, workload.pids)
        answer = await self._bring_in(workload)
        return answer | {"notes": [*answer["notes"], *(f"it does not count under {limit}" for limit in left[:1])]}

    async def adopt(self, request: AdoptRequest, caller: Caller) -> dict[str, Any]:
        given = [name for name in ("pid", "unit", "cgroup") if getattr(request, name)]
        if len(given) != 1:
            raise Invalid([Finding("", given or None, "exactly one is wanted", "give pid, unit or cgroup")], "request")
        if request.pid:
            return await self._adopt_process(request, caller)
        if request.unit:
            handle = await self.shell.on_ring(self.whereabouts.unit, request.unit)
        else:
            handle = self.whereabouts.cgroup(admission.check_cgroup(request.cgroup, self.config.top, caller))
        admission.check_cgroup(handle.path, self.config.top, caller)
        self._check_free(handle)
        name = request.name or _name_from(request.unit or handle.path)
        return await self._bring_in(self._workload(request, name, caller, handle), insist=request.insist)

    async def _adopt_process(self, request: AdoptRequest, caller: Caller) -> dict[str, Any]:
        """A process of a service stays where it is, and its unit is managed; any other one is moved into a place, with
        all that it has started."""
        process = admission.own_process(request.pid, caller)
        name = request.name or f"{_name_from(process.command)}-{process.pid}"
        if not admission.owner_of(process, self.config.top):
            self._check_leaving(process, caller)
            self._refuse_leaving(process)
            members = admission.family(process, self.config.top, caller)
            workload = self._workload(request, name, caller, Handle())
            self._check_nobody_else(workload, {process.pid, *(p.pid for p in descendants(process.pid))})
            if request.insist and workload.minimum != NOTHING:  # nobody is moved before it is known to be upheld
                answer = await self._bring_in(workload, insist=True)
                await self._enter(workload.target, members)
            else:
                pids, proofs = tuple(p.pid for p in members), tuple(p.proof for p in members)
                answer = await self._bring_in(replace(workload, pids=pids, proofs=proofs))
            await self._gather(workload.target, process, caller)
            return answer
        handle = admission.where_it_runs(process)
        admission.check_cgroup(handle.path, self.config.top, caller)
        self._check_free(handle)
        return await self._bring_in(self._workload(request, name, caller, handle), insist=request.insist)

    def _check_free(self, handle: Handle) -> None:
        admission.check_free(handle, self._known())

    def _check_leaving(self, process: Process, caller: Caller) -> None:
        admission.check_leaving(process, self.config.top, caller, self._known())

    def _known(self) -> list[Workload]:
        return [*self.local.known(), *self.shell.agent.workloads.values()]

    def _refuse_leaving(self, process: Process) -> None:
        """Whoever set a limit meant this process, too: nobody sheds it by being managed."""
        if limits := self._left_limits(process):
            hint = f"adopt the cgroup with all that is in it (--cgroup {limits[0].cgroup}), or take the limit off first"
            raise Denied(f"process {process.pid} would leave {limits[0]}, and `forget` would not bring it back: {hint}")

    def _left_limits(self, process: Process) -> list[Limit]:
        return [] if admission.is_ours(process, self.config.top) else self.whereabouts.limits(process)

    async def _enter(self, target: TargetId, members: list[Process]) -> None:
        """Into the place that waits for them, the first of them without fail."""
        if not self.shell.agent.writes:
            raise await self._taken_back(target, Denied("the agent was disarmed meanwhile"))
        joins = tuple(Join(target, p.pid, "is adopted", p.proof) for p in members)
        outcome = await self.shell.on_ring(self.shell.agent.kernel.apply, Plan(joins))
        if problem := _problem(outcome, target, (members[0].pid,)):
            raise await self._taken_back(target, problem)
        self.local.entered(target)

    def _check_nobody_else(self, workload: Workload, coming: Collection[int]) -> None:
        """What a forgotten workload left running keeps its cgroup: one of the same name would be joined to it.

        A name that the tree has no place for is refused here, before the ring hears of it.
        """
        if workload.target in self.local:
            return  # then the name is taken
        tree = self.shell.agent.kernel.tree
        for tier in (*(tier.value for tier in kinds.Tier), APART):
            at = tree.path_for(tier, workload.namespace, workload.name)
            others = sorted({*(self.whereabouts.pids(replace(workload, pids=(), handle=at)) or ())} - {*coming})
            if others and not self._unwritable:  # who can write nothing joins nobody, and these may be another agent's
                raise Conflict(
                    f"{at.path} still holds process {others[0]} of an earlier {workload.namespace}/{workload.name} "
                    "that is not managed any more; choose another name, or end that process first"
                )

    async def _gather(self, target: TargetId, process: Process, caller: Caller) -> None:
        """What a child started between the look at it and its move is still outside: once more, and again."""
        for _ in range(MOST_LOOKS):
            late = admission.family(process, self.config.top, caller)[1:]
            if not late or not self.shell.agent.writes:
                return
            joins = tuple(Join(target, p.pid, "was started meanwhile", p.proof) for p in late)
            await self.shell.on_ring(self.shell.agent.kernel.apply, Plan(joins))

    def _workload(self, request: Common, name: str, caller: Caller, handle: Handle) -> Workload:
        admission.check_names(request.namespace, name, request.labels)
        profiles = self.shell.agent.document.profiles
        admission.check_profile(request.profile, objects.namespace_labels(request.namespace, caller.uid), profiles)
        meta = kinds.Meta(
            name=name,
            namespace=request.namespace,
            labels=objects.labelled(request.profile, request.labels),
            annotations=request.annotations,
        )
        spec = kinds.WorkloadSpec(requests=request.requests, limits=request.limits, minimum=request.minimum)
        wall = self.shell.clock.read().wall
        asked = kinds.Workload(metadata=meta, spec=spec)
        admission.check_amounts(asked)
        facts = self.shell.agent.observer.facts
        admission.check_measured(asked, facts)
        workload = objects.from_object(asked, facts, handle=handle, uid=caller.uid, since=wall)
        return objects.chosen(self.shell.translate(workload), profiles)

    async def _bring_in(self, workload: Workload, *, insist: bool = False) -> dict[str, Any]:
        """Tell the adapter, wait for the ring, undo it when the kernel would not have it, or not with its minimum."""
        target = workload.target
        event = self.local.add(workload)
        try:
            report = await self.shell.handle(event)
        except QosError as e:
            raise await self._taken_back(target, e) from e
        if problem := _problem(report.outcome, target, workload.pids[:1]):
            raise await self._taken_back(target, problem)
        placed = report.snap.workloads.get(target)
        if placed is None:
            raise Conflict(f"{workload.namespace}/{workload.name} was forgotten while it was being placed")
        unmet = await self.shell.on_ring(minimum.unmet, report, placed, self._unwritable)
        if unmet and insist:
            why = f"{workload.namespace}/{workload.name} is not adopted: {'; '.join(unmet)}"
            raise await self._taken_back(target, Denied(f"{why}; --best-effort-minimum goes on"))
        self._remember(placed if report.outcome.dry else replace(placed, pids=()), report.snap.node.boot_id)
        return _answer(report, placed, unarmed(self.shell.agent, self._unwritable), unmet)

    async def _taken_back(self, target: TargetId, problem: QosError) -> QosError:
        if target in self.local:
            await self.shell.handle(self.local.remove(target))
        return problem

    def _remember(self, placed: Workload, boot_id: str) -> None:
        self.local.settle(placed)
        self._remembered[placed.target] = placed
        self.cache.keep_workload(
            KeptWorkload(
                workload=objects.to_object(placed),
                handle=placed.handle,
                inode=self.whereabouts.identity(placed.handle),
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
            raise NotFound(f"there is no local workload {cut(namespace)}/{cut(name)}")
        owner = self.local.get(target).uid
        if not caller.administrator and caller.uid != owner:
            raise Denied(f"{namespace}/{name} was placed by uid {owner}")
        # What the command left running stays managed until it ends too.
        event = self.local.look(target) if ended else self.local.remove(target)
        if event is not None:
            await self.shell.handle(event)
        return {"target": target, "removed": event is not None, "ended": ended}

    async def workloads(self) -> list[kinds.Workload]:
        return await self.shell.on_ring(answers.workloads, self.report)

    # ------------------------------------------------------------------ looking

    def status(self) -> dict[str, Any]:
        agent = self.shell.agent  # an order to disarm counts at once, not from the next report on
        own = {"armed": agent.armed, "warnings": self.cache.warnings, "document": agent.document.hash}
        own["server"] = self._server()
        status_body = answers.status(self.report)
        if self.shell.fault:
            status_body["faults"]["ring"] = self.shell.fault
        return status_body | own | ({"unwritable": self._unwritable} if self._unwritable else {})

    async def top(self) -> dict[str, Any]:
        return await self.shell.on_ring(answers.top, self.report)

    async def doctor(self) -> dict[str, Any]:
        links = await self.shell.on_ring(traffic.links, self.report)
        return {"capabilities": capabilities(self.report), "notes": self.cache.warnings, "links": links}

    async def explain(self, target: str, name: str | None, *, wide: bool = False) -> dict[str, Any]:
        agent = self.shell.agent
        explain = partial(answers.explanation, wide=wide, said=agent.strategy)
        return await self.shell.on_ring(explain, self.report, agent.kernel, TargetId(target), name)

    async def journal(self) -> list[dict[str, Any]]:
        return await self.shell.on_ring(answers.journal, self.shell.agent.kernel)

    async def drift(self) -> list[dict[str, Any]]:
        return answers.drift(self.report)

    # ------------------------------------------------------------------ steering

    def holds(self) -> tuple[Hold, ...]:
        return self._holding.live()

    async def hold(self, request: HoldRequest, caller: Caller) -> dict[str, Any]:
        return await self._holding.hold(request, caller, self.report, self._unwritable)

    async def release(self, target: str, knobs: frozenset[str], caller: Caller) -> dict[str, Any]:
        return await self._holding.release(target, knobs, caller)

    async def arm(self) -> dict[str, Any]:
        if self._unwritable:
            raise Denied(f"the agent stays read-only (not armed): {self._unwritable}")
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
        return await self.disarm(revert=False) | await self._revert(force=force)

    async def _revert(self, *, force: bool) -> dict[str, Any]:
        return answers.reverted(await self.shell.on_ring(self.shell.agent.revert, self.shell.clock.read(), force=force))

    def stop(self, how: Stop) -> dict[str, Any]:
        self.shell.stop(how)
        return {"stopping": True, "revert": how.revert}

    async def plan(self, raws: Iterable[object], node: dict[str, Any] | None, caller: Caller) -> dict[str, Any]:
        """As the caller would place it. On a thread of its own, in turns: whoever may read may ask, and nobody else
        waits for it."""
        objects, report = [*raws, *([node] if node else [])], self.report
        async with self._planning.of(caller):
            present = await self.shell.on_ring(in_force, self.shell.agent, report)
            return await asyncio.to_thread(self._plan, objects, present, caller.uid)

    def _plan(self, objects: list[object], present: what_if.Present, uid: int) -> dict[str, Any]:
        wall, say = self.shell.clock.read().wall, self.shell.translate
        return what_if.as_plain(
            what_if.whatif(objects, present.snap.node, wall=wall, present=present, uid=uid, translate=say)
        )


def _problem(outcome: Outcome, target: TargetId, wanted: tuple[int, ...]) -> QosError | None:
    """Why the workload could not be brought in: its cgroup was not made, or its process did not get in."""
    for change, result in outcome.results if not outcome.dry else ():
        if isinstance(change, ValueChange) or change.target != target:
            continue
        if isinstance(change, Join) and change.pid not in wanted:
            continue  # a child that ended meanwhile
        if isinstance(result, Refused):
            return Denied(result.reason)
        if isinstance(result, Gone):
            return NotFound(f"the process or the cgroup of {target} vanished")
    return None


def _answer(report: Report, w: Workload, unarmed: str, unmet: list[str]) -> dict[str, Any]:
    """`otherNotes`: those that say something else than `unmet`, why its minimum is not upheld."""
    entitled = report.snap.entitlements[w.target]
    limits = (*raised_limits(w.target, report.plan), *minimum.unlimited(report, w.target))
    notes = [*entitled.notes, *(Note("Note", "", text) for text in limits)]
    if not report.armed:
        notes.append(Note("Note", "", f"nothing was written: {unarmed or 'the agent was disarmed meanwhile'}"))
    notes += [
        Note("Note", change.setting.knob, result.reason)
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
        "entitlement": objects.entitlement(entitled),
        "notes": [*map(str, notes)],
        "otherNotes": [str(note) for note in notes if not {note.text, str(note)} & {*unmet}],
        "unmet": unmet,
    }


def _name_from(text: str) -> str:
    last = text.rstrip("/").rpartition("/")[2].lower()
    for suffix in (".service", ".scope", ".slice"):
        last = last.removesuffix(suffix)
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in last).strip("-")[:40] or "workload"
