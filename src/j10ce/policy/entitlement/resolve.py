"""From policies and workloads to entitlements.

Every wish for a floor is a claim. Claims are served in the order in which they came up (the later of the policy's
creation and the workload's arrival), so a policy or a workload that comes later never takes a floor away.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from j10ce.model.kinds import (
    CacheSection,
    CpuSection,
    IoSection,
    MemorySection,
    MinimalReservationPolicy,
    Minimum,
    Tier,
)
from j10ce.model.knob import TargetId
from j10ce.model.quantity import Bytes, Quantity
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Ceiling, Entitlement, Note, Source, Traffic, Workload
from j10ce.policy.choose import Choice, Chooser
from j10ce.policy.document.document import NodeDocument, limit, reference
from j10ce.policy.entitlement.claims import Book, Claim, Promise, Refusals
from j10ce.policy.entitlement.layers import Layers, layers
from j10ce.policy.entitlement.ledger import AGENT, HEADROOM, NO_BYTES, Headroom, Ledger, Line, guaranteeable
from j10ce.policy.entitlement.traffic import UNSHAPED, AskedTraffic, Shaping, asked, granted
from j10ce.policy.lifetime import created, ends, over
from j10ce.policy.payer import measured, rank
from j10ce.policy.profiles import RESERVES_REQUEST
from j10ce.policy.select import compiled
from j10ce.policy.strategy import EffectiveStrategy

NO_QUANTITY: Final = Quantity(0)
NO_CACHE: Final = CacheSection()
ROUNDING: Final = 1 << 20  # bytes by which whole pages on every level of the tree may miss a promise


class Resolution(Struct, frozen=True):
    """What everyone on a node is entitled to. `notes` concern policies, not single workloads."""

    entitlements: Mapping[TargetId, Entitlement]
    ledger: Ledger
    notes: tuple[Note, ...] = ()
    until: float = math.inf  # wall clock at which the first promise expires


class Beside(NamedTuple):
    """Memory that is kept on the machine beside the floors of workloads."""

    others: Bytes = NO_BYTES  # memory.min of those that are not ours: nobody's to promise
    agent: Bytes = NO_BYTES  # what the agent would keep for itself: never at the cost of a promise made
    kept: tuple[tuple[TargetId, Bytes], ...] = ()  # what the kernel holds for us now, by workload
    groups: Bytes = NO_BYTES  # and in groups beyond all that is claimed inside, with what the agent keeps


class Asking(NamedTuple):
    """One workload on its way to an entitlement."""

    target: TargetId
    workload: Workload
    choice: Choice
    claims: list[Claim]
    layers: Layers
    traffic: AskedTraffic


NOTHING_BESIDE: Final = Beside()
UNSAID: Final = EffectiveStrategy()


def resolve(
    workloads: Collection[Workload],
    document: NodeDocument,
    node: NodeFacts,
    *,
    wall: float,
    before: Ledger | None = None,
    headroom: Headroom = HEADROOM,
    beside: Beside = NOTHING_BESIDE,
    strategy: EffectiveStrategy = UNSAID,
) -> Resolution:
    """Entitlements of all workloads, and the ledger behind them. `strategy`: of this node.

    `before` is the ledger in force: its promises are kept as long as they are wanted, whatever was added or edited,
    and are cut by tier where the machine has shrunk below them.
    """
    capacity = node.capacity
    promises = _promises(document, capacity, wall)
    asking = _asking(workloads, document, promises, capacity, strategy)
    book = Book(Ledger(guaranteeable(capacity, headroom), beside=beside.others), promises)
    claims: Mapping[str, Sequence[Claim]] = {a.target: a.claims for a in asking if a.claims}
    if before is not None:
        book.keep(before, claims)
    for line in _not_given_back(book.ledger, beside):
        book.ledger.carry(line)
    own = Resources(memory=beside.agent).at_most(book.ledger.free)
    book.ledger.carry(Line(AGENT, own, Tier.BESTEFFORT, AGENT))
    refusals = book.serve(claims)
    return Resolution(
        {a.target: _entitle(a, book, refusals) for a in asking},
        book.ledger,
        tuple(_policy_notes(promises, refusals, node)),
        min((p.until for p in promises), default=math.inf),
    )


def _not_given_back(ledger: Ledger, beside: Beside) -> list[Line]:
    """What the kernel still keeps beyond the promises: nobody else can be promised it before it is given back."""
    over = [(target, n - _promised(ledger, target)) for target, n in beside.kept]
    groups = ("groups", beside.groups - beside.agent)
    kept = [(f"{who}, not given back yet", n) for who, n in (*over, groups) if n >= ROUNDING]
    return [Line(holder, Resources(memory=Bytes(n)), Tier.SYSTEM) for holder, n in kept]


def _promised(ledger: Ledger, holder: str) -> int:
    line = ledger.get(holder)
    return line.amount.memory if line else 0


def admit(
    arrivals: Collection[Workload],
    document: NodeDocument,
    node: NodeFacts,
    *,
    wall: float,
    before: Resolution,
    strategy: EffectiveStrategy = UNSAID,
) -> Resolution:
    """`before`, and on top of it workloads that came after all others: nobody else is looked at again.

    Where the claims of later comers are served last, that is what `resolve` would say.
    """
    promises = _promises(document, node.capacity, wall)
    asking = _asking(arrivals, document, promises, node.capacity, strategy)
    book = Book(before.ledger.copy(), promises)
    for back in asking:  # one that was here before starts over
        book.forget(back.target)
    refusals = book.serve_late({a.target: a.claims for a in asking if a.claims})
    fresh = {a.target: _entitle(a, book, refusals) for a in asking}
    return Resolution({**before.entitlements, **fresh}, book.ledger, before.notes, before.until)


def _promises(document: NodeDocument, capacity: Resources, wall: float) -> list[Promise]:
    live = (p for p in document.policies if not over(p, wall))
    return [_promise(p, document.units.get(reference(p), p.spec.units), capacity) for p in live]


def _asking(
    workloads: Collection[Workload],
    document: NodeDocument,
    promises: Sequence[Promise],
    capacity: Resources,
    strategy: EffectiveStrategy,
) -> list[Asking]:
    near = {ns: [p for p in promises if p.namespace == ns] for ns in {p.namespace for p in promises}}
    chooser = Chooser(document.profiles)
    asking: list[Asking] = []
    for w in workloads:
        target, choice, here = w.target, chooser.choose(w), near.get(w.namespace, [])
        if here and not w.vouched:
            choice, here = choice._replace(notes=(*choice.notes, *_not_for(w, here))), []
        laid = layers(w, choice, strategy)
        traffic = asked(laid.network, capacity)
        claims = _claims(target, w, choice, here, capacity, laid.memory, traffic)
        asking.append(Asking(target, w, choice, claims, laid, traffic))
    return asking


def _not_for(w: Workload, promises: Iterable[Promise]) -> Iterator[str]:
    matching = (p.source for p in promises if p.test(w.labels))
    return (
        f"{source} is for what root places here: uid {w.uid} may give any namespace and label" for source in matching
    )


def amounts(minimum: Minimum, capacity: Resources) -> Resources:
    """A minimum in units of the node; percentages are of its whole capacity."""
    fields = (minimum.cpu, minimum.memory, minimum.network, minimum.disk_read, minimum.disk_write)
    cpu, *rest = (NO_QUANTITY if q is UNSET else q for q in fields)
    in_bytes = (q.bytes(Bytes(whole)) for q, whole in zip(rest, capacity[1:], strict=True))
    return Resources._make((cpu.millicores(capacity.cpu), *in_bytes))


def _promise(policy: MinimalReservationPolicy, units: int, capacity: Resources) -> Promise:
    spec = policy.spec
    asked = amounts(spec.minimum, capacity)
    shape = measured(asked, capacity)
    return Promise(
        reference(policy),
        policy.metadata.namespace,
        compiled(spec.selector),
        shape,
        rank(shape, reference(policy), capacity),
        units if any(shape) else 0,
        created(policy),
        ends(policy),
        (*_no_measure(asked.minus(shape)), *_no_whole(spec.minimum, capacity)),
        bool(limit(policy)),
    )


def _no_measure(lost: Resources) -> Iterator[str]:
    return (f"{name} {spell(name, n)} cannot be promised here" for name, n in lost.named())


def _no_whole(minimum: Minimum, capacity: Resources) -> Iterator[str]:
    fields = (minimum.cpu, minimum.memory, minimum.network, minimum.disk_read, minimum.disk_write)
    for name, q, whole in zip(RESOURCES, fields, capacity, strict=True):
        if q is not UNSET and q.percent and q.amount and not whole:
            yield f"{name} {q} cannot be promised here"


def _claims(
    target: TargetId,
    w: Workload,
    choice: Choice,
    promises: Iterable[Promise],
    capacity: Resources,
    memory: MemorySection,
    traffic: AskedTraffic,
) -> list[Claim]:
    if choice.ignored:
        return []
    matching = [p for p in promises if p.test(w.labels)]
    own = [*_own_claims(w, choice, capacity, memory), *_of_traffic(w, choice, capacity, traffic)]
    if not matching and not own:
        return []
    cpu = any(p.shape.cpu for p in matching) or any(amount.cpu for _, _, amount in own)
    tier = _tier(choice, cpu_floor=cpu, floor=True)
    return [
        *(Claim(max(p.created, w.since), target, p.rank, p.source, p.shape, tier) for p in matching),
        *(Claim(at, target, rank(n, source, capacity), source, n, tier) for at, source, n in own),
    ]


def _own_claims(
    w: Workload, choice: Choice, capacity: Resources, memory: MemorySection
) -> Iterator[tuple[float, str, Resources]]:
    """What the workload itself asks for, and what its profile reserves of its request."""
    if any(w.minimum):
        yield w.since, f"Workload/{w.namespace}/{w.name}", measured(w.minimum, capacity)
    if choice.profile is None or not any(w.requests):
        return
    since = max(w.since, created(choice.profile))
    if choice.tier in RESERVES_REQUEST:
        yield since, reference(choice.profile), measured(w.requests, capacity)
    elif least := _least_memory(w, memory):
        yield since, reference(choice.profile), Resources(memory=least)


def _of_traffic(
    w: Workload, choice: Choice, capacity: Resources, traffic: AskedTraffic
) -> Iterator[tuple[float, str, Resources]]:
    """Bandwidth that sections promise it: a claim of its own, so that nothing else is refused with it."""
    if any(least := measured(traffic.floor, capacity)):
        since = w.since if choice.profile is None else max(w.since, created(choice.profile))
        yield since, _traffic_source(w, choice), least


def _traffic_source(w: Workload, choice: Choice) -> str:
    whose = f"Workload/{w.namespace}/{w.name}" if choice.profile is None else reference(choice.profile)
    return f"{whose}#network"


def _least_memory(w: Workload, section: MemorySection) -> Bytes:
    percent = 0 if section.min_percent is UNSET else section.min_percent
    return Bytes(w.requests.memory * percent // 100)


def _tier(choice: Choice, *, cpu_floor: bool, floor: bool) -> Tier:
    """A workload with a CPU floor cannot be best-effort: an idle group gets nothing while others want the CPU."""
    lifted = choice.tier is Tier.BESTEFFORT and (cpu_floor or (floor and choice.profile is None))
    return Tier.STANDARD if lifted else choice.tier


def _entitle(asking: Asking, book: Book, refusals: Refusals) -> Entitlement:
    target, w, choice, claims, laid, _ = asking
    promised, floor = NOTHING, NOTHING
    if claims and (line := book.ledger.get(target)) is not None:
        promised, floor = line.amount, book.ledger.granted(target)
    profile, chosen = choice.profile, choice.profile is not None or bool(claims) or laid.switched_on
    tier = _tier(choice, cpu_floor=promised.cpu > 0, floor=bool(claims))
    cpu, memory, cache = (laid.cpu, laid.memory, laid.cache) if chosen else (CpuSection(), MemorySection(), NO_CACHE)
    notes = (*(Note("Note", "", text) for text in choice.notes), *laid.notes)
    if laid.sources and not chosen:
        notes = (*notes, Note("Note", laid.sources[0].object, "not heeded: no profile and no policy is for it"))
    if claims:
        notes = (*notes, *_notes(asking, tier, promised, book, refusals))
        if memory.min_percent is not UNSET and _least_memory(w, memory) > floor.memory:
            memory = replace(memory, min_percent=UNSET)  # the book has no room for it
        if tier is not choice.tier:
            cpu = replace(cpu, idle=False, suppressible=False)
    shaping = UNSHAPED
    if chosen:
        shaping = Shaping(asking.layers.network, *_traffic(asking, promised, floor))
        notes = (*notes, *_unmeasured(asking), *_realtime(cpu, floor))
    return Entitlement(
        target,
        chosen,
        tier,
        profile.metadata.name if profile else "",
        w.requests,
        floor,
        _ceiling(w.limits, laid.io if chosen else IoSection()),
        cpu,
        memory,
        cache,
        (*_sources(choice, claims, promised), *laid.sources) if chosen else (),
        notes,
        shaping.section,
        laid.io if chosen else IoSection(),
        shaping.egress,
        shaping.ingress,
    )


def _unmeasured(asking: Asking) -> Iterator[Note]:
    source = _traffic_source(asking.workload, asking.choice)
    return (Note("Note", source, text) for text in asking.traffic.notes)


def _ceiling(limits: Ceiling, io: IoSection) -> Ceiling:
    """The lower of what it was given as a limit and of what its sections say."""
    read = math.inf if io.read_limit is UNSET else float(io.read_limit.amount)
    write = math.inf if io.write_limit is UNSET else float(io.write_limit.amount)
    if read >= limits.disk_read and write >= limits.disk_write:
        return limits
    return replace(limits, disk_read=min(limits.disk_read, read), disk_write=min(limits.disk_write, write))


def _traffic(asking: Asking, promised: Resources, floor: Resources) -> tuple[Traffic, Traffic]:
    """What sections say of one direction holds there alone; a reservation holds in both."""
    own = _traffic_source(asking.workload, asking.choice)
    met = (c.amount.network for c in asking.claims if c.source != own and c.amount.network <= promised.network)
    others, limit = max(met, default=0), asking.workload.limits.network
    said = asking.traffic
    egress, ingress = (granted(d, floor.network, others, limit) for d in (said.egress, said.ingress))
    return egress, ingress


def _sources(choice: Choice, claims: list[Claim], promised: Resources) -> Iterator[Source]:
    if choice.profile is not None:
        yield Source("profile", reference(choice.profile), choice.why)
    if not any(promised):
        return
    for n, (name, amount) in enumerate(zip(RESOURCES, promised, strict=True)):
        # Of the claims that are met, the largest made this floor; the earliest of equals came first.
        if amount and (met := [c for c in claims if 0 < c.amount[n] <= amount]):
            best = min(met, key=lambda c: (-c.amount[n], c.since, c.source))
            yield Source(f"floor.{name}", best.source, f"at least {spell(name, best.amount[n])}")


def _realtime(cpu: CpuSection, floor: Resources) -> Iterator[Note]:
    if cpu.latency == "realtime" and not floor.cpu:
        yield Note("Note", "", "sched.realtime: without a CPU floor its threads stay fair")


def _notes(asking: Asking, tier: Tier, promised: Resources, book: Book, refusals: Refusals) -> Iterator[Note]:
    target, _, choice, claims, _, _ = asking
    for claim in sorted(claims):
        if (promise := book.promises.get(claim.source)) is not None and promise.notes:
            yield from (Note("Note", claim.source, text) for text in promise.notes)
        if (refusal := refusals.get((target, claim.source))) is not None and not claim.amount.fits(promised):
            yield Note("Unprotected", claim.source, f"asks for {claim.amount}: {refusal}")
    if tier is not choice.tier and choice.profile is not None:
        floor = spell("cpu", promised.cpu)
        text = f"tier {choice.tier.value} cannot hold a CPU floor of {floor}, so it runs in tier {tier.value}"
        yield Note("Note", "", text)
    if cut := book.ledger.cut(target):
        yield Note("Note", "", cut)


def _policy_notes(promises: Iterable[Promise], refusals: Refusals, node: NodeFacts) -> Iterator[Note]:
    for p in promises:
        yield from (Note("Note", p.source, f"{text}: {node.name} has no measure of it") for text in p.notes)
        if (refusal := refusals.get(("", p.source))) is not None:
            yield Note("Note", p.source, f"not all of its {p.units} units are held: {refusal}")
