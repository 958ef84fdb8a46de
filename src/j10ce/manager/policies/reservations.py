"""The Reservation Manager: which policies the fleet admits, and where their units are.

The ledger is derived from the objects alone. A leader that takes over reads in the status of each policy what was
admitted and where it stood, and goes on from there; in between, each call takes in what has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import UNSET, Struct

from j10ce.manager.policies.admission import Admitted, Decision, expired, held, limited, partly_held, refused, unheld
from j10ce.manager.policies.pledges import lent_within_s, not_held, to_pledge
from j10ce.manager.policies.roster import Changes, Roster
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS, PolicyRevision
from j10ce.policy.document.document import by_owner, placed, reference
from j10ce.policy.entitlement.ledger import NAMED_HOLDERS
from j10ce.policy.lifetime import admitted, created, over
from j10ce.scheduler.ledger.fleet import Fleet
from j10ce.scheduler.ledger.lending import LendingOffer, Loans
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT, PledgeRefusal

RETRY_S: Final = 10.0  # between attempts that move others: to place what is short, to admit what was refused
LOOK_S: Final = 5.0  # between looks at what is lent
MOST_ATTEMPTS: Final = 8  # that move others, in one call: each may take a few tenths of a second


class JudgedPledge(Struct):
    """One policy with units, and what was decided about it."""

    policy: MinimalReservationPolicy
    generation: int = 0  # in force; 0: none
    refusal: PledgeRefusal | None = None  # of the present generation
    tried: int = 0  # generation of the last attempt
    again: float = 0.0  # from when on others may be moved for it once more
    decision: Decision | None = None


class Reservations:
    def __init__(self, roster: Roster, *, limit_percent: int = NAMESPACE_LIMIT) -> None:
        self._fleet = Fleet(limit_percent=limit_percent)
        self._roster = roster
        self._judged: dict[str, JudgedPledge] = {}
        self._loans = Loans()
        self._lent: Mapping[str, int] = {}
        self._full: dict[str, str] = {}  # namespaces at their limit, and what they have
        self._stirred = False  # an edit may have left room for those who were refused before
        self._repack = self._look = 0.0  # the next time

    def decide(
        self,
        policies: Collection[MinimalReservationPolicy],
        nodes: Collection[NodeQoS],
        wall: float,
        revisions: Iterable[PolicyRevision] = (),
    ) -> Mapping[str, Decision]:
        """By `reference` of the policy. Objects of the last call that are the same instances cost nothing.

        `revisions` serve a leader that takes over: an edit that was refused leaves an earlier one in force.
        For those who have one clock.
        """
        return self.weigh(policies, self.look(policies, nodes, wall), wall, wall, revisions)

    def look(self, policies: Collection[MinimalReservationPolicy], nodes: Collection[NodeQoS], wall: float) -> Changes:
        """The short first half of `decide`: who is in the fleet."""
        return self._roster.look(nodes, policies, wall)

    def weigh(
        self,
        policies: Collection[MinimalReservationPolicy],
        nodes: Changes,
        wall: float,
        now: float,
        revisions: Iterable[PolicyRevision] = (),
    ) -> Mapping[str, Decision]:
        """The long second half: seconds, when many units have to move. Any thread may run it, one at a time.

        What ends does so by `wall`; intervals are counted by `now`, which nobody sets.
        """
        named = {reference(p): p for p in policies}
        live = {source: p for source, p in named.items() if p.spec.units and not over(p, wall)}
        stirred = self._end(live) | self._take_in(nodes, now) | self._take_over(live, wall, now, revisions)
        self._stirred = self._admit(live, now, stirred=stirred or self._stirred)
        self._refresh(now)
        return {source: self._decision(source, p, wall, now) for source, p in named.items()}

    def _end(self, live: Mapping[str, MinimalReservationPolicy]) -> bool:
        """Policies that are deleted, over, or hold no units any more; also those that another one has the name of."""
        over = [source for source, judged in self._judged.items() if not _same(judged.policy, live.get(source))]
        for source in over:
            del self._judged[source]
            self._fleet.release(source, repack=False)
        return bool(over)

    def _take_in(self, change: Changes, now: float) -> bool:
        stirred, due = bool(change.fresh or change.gone), now >= self._repack
        if stirred or due:
            self._fleet.update(change.fresh, change.gone, repack=change.fewer or due)
            self._repack = now + RETRY_S if change.fewer or due else self._repack
        return stirred

    def _take_over(
        self,
        live: Mapping[str, MinimalReservationPolicy],
        wall: float,
        now: float,
        revisions: Iterable[PolicyRevision],
    ) -> bool:
        """What was admitted by whoever led before."""
        coming = {source: policy for source, policy in live.items() if source not in self._judged}
        kept = by_owner(revisions) if any(p.status.admitted_generation for p in coming.values()) else {}
        for source, policy in coming.items():
            self._judged[source] = JudgedPledge(policy)
            if (held := admitted(policy, kept.get(policy.metadata.uid, ()))) is not None:
                self._fleet.carry(to_pledge(held), placed(policy))
                self._judged[source].generation = held.metadata.generation if source in self._fleet else 0
                if (since := _called_back(policy)) is not None:
                    self._loans.resume(source, now - max(0.0, wall - since))
        if coming:
            self._fleet.update()
        return bool(coming)

    def _admit(self, live: Mapping[str, MinimalReservationPolicy], now: float, *, stirred: bool) -> bool:
        """The earliest first; a refused one is tried again as things change, and from time to time by moving others.

        Whether anyone was admitted.
        """
        attempts, anyone = MOST_ATTEMPTS, False
        for source, policy in sorted(live.items(), key=lambda p: (created(p[1]), p[0])):
            judged = self._judged[source]
            edited = judged.policy.metadata.generation != policy.metadata.generation
            judged.policy, judged.decision = policy, None if edited else judged.decision
            if edited and source in self._fleet:
                self._fleet.amend(source, lent_within_s(policy))
            if judged.generation == policy.metadata.generation and source in self._fleet:
                judged.refusal = None
                continue
            due = attempts > 0 and (judged.tried != policy.metadata.generation or now >= judged.again)
            if due or stirred or edited or judged.refusal is None:
                self._try(judged, now, move=due)
                attempts -= due and judged.refusal is not None
                anyone |= judged.refusal is None
        return anyone

    def _try(self, judged: JudgedPledge, now: float, *, move: bool) -> None:
        policy = judged.policy
        pledge = to_pledge(policy)
        refusal = self._fleet.admit(pledge, repack=move)
        if refusal is None:
            judged.generation, judged.refusal, judged.decision = policy.metadata.generation, None, None
        elif move or judged.refusal is None or judged.refusal.reason != refusal.reason:
            judged.refusal, judged.decision = refusal, None
        if move:
            judged.tried, judged.again = policy.metadata.generation, now + RETRY_S

    def _refresh(self, now: float) -> None:
        """Forget decisions that no longer hold; numbers that always move are written from time to time."""
        for source in self._fleet.changed() & self._judged.keys():
            self._judged[source].decision = None
        if now < self._look:
            return
        self._look = now + LOOK_S
        self._full = self._fleet.full()
        self._lend(now)
        for pledge in self._fleet:
            if pledge.within_s is not None or self._fleet.standing(pledge.source).missing:
                self._judged[pledge.source].decision = None

    def _lend(self, now: float) -> None:
        offers: dict[str, list[LendingOffer]] = {}
        for pledge in self._fleet:
            if pledge.within_s is not None:
                used, unused, _ = self._fleet.standing(pledge.source)
                for node in {**used, **unused}:
                    n, m = unused.get(node, 0), used.get(node, 0)
                    offers.setdefault(node, []).append(LendingOffer(pledge.source, pledge.shape, n, m, pledge.within_s))
        for node in self._loans.nodes() - offers.keys():
            self._loans.forget(node)
        for node, offered in offers.items():
            self._loans.observe(node, self._fleet.free(node), self._fleet.node(node).best_effort, offered, now)
        self._loans.taken_over()
        self._lent = self._loans.units()

    def _decision(self, source: str, policy: MinimalReservationPolicy, wall: float, now: float) -> Decision:
        if over(policy, wall):
            return expired(policy)
        decision = unheld(policy)
        if (judged := self._judged.get(source)) is not None:
            decision = judged.decision = judged.decision or self._decided(source, judged, now)
        if any(missing := not_held(policy)):
            decision = partly_held(policy, decision, missing)
        full = self._full.get(policy.metadata.namespace)
        return limited(policy, decision, full) if full else decision

    def _decided(self, source: str, judged: JudgedPledge, now: float) -> Decision:
        if source not in self._fleet:
            return refused(judged.policy, judged.refusal) if judged.refusal else unheld(judged.policy)
        pledge, standing = self._fleet.pledge(source), self._fleet.standing(source)
        shortage = self._fleet.shortage(source)
        lost = self._roster.lost() if shortage else ()
        stands = Admitted(
            judged.generation,
            standing,
            self._worded(shortage),
            tuple(name for name, labels in lost if pledge.selects(labels)),
            pledge.within_s is not None,
            self._lent.get(source, 0),
            self._loans.reclaims(source),
        )
        return held(judged.policy, judged.refusal, stands, now)

    def _worded(self, shortage: PledgeRefusal | None) -> str:
        """With the names of those who could make room where the least is missing."""
        if shortage is None or shortage.lack is None:
            return str(shortage or "")
        names = self._roster.outsiders(shortage.lack.node)[:NAMED_HOLDERS]
        return f"{shortage}; on {shortage.lack.node}: {', '.join(names)}" if names else str(shortage)


def _called_back(policy: MinimalReservationPolicy) -> float | None:
    """Since when units that were lent should come back, by its status; wall clock."""
    reclaimed = next((c for c in policy.status.conditions if c.type == "Reclaimed"), None)
    if reclaimed is None or reclaimed.status == "True" or reclaimed.last_transition_time is UNSET:
        return None
    return reclaimed.last_transition_time.timestamp()


def _same(one: MinimalReservationPolicy, other: MinimalReservationPolicy | None) -> bool:
    return other is not None and one.metadata.uid == other.metadata.uid
