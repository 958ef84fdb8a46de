"""All accounts, kept by events. What is not followed any more is forgotten, so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.scheduler.accounts.account import Incarnation, OwnerAccount
from j10ce.scheduler.accounts.identity import DEFAULT_SLO, NOBODY, SYSTEM, Identity, identified, owner_of
from j10ce.scheduler.accounts.measure import Measure
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts

IDLE_S: Final = 3600.0  # an account without pods is kept so long: who is away comes back, or never
MOST_IDLE: Final = 100_000  # whoever makes and deletes pods all the time fills no memory
MOST_OWNERS: Final = 64  # of one account that are followed: an annotation can name as many as there ever were

Mode: TypeAlias = Literal["lazy", "classic"]


class Departure(NamedTuple):
    """A pod leaves its slot: how it and its owner stand at that moment."""

    account: OwnerAccount
    incarnation: Incarnation
    measure: Measure
    at: float
    succeeded: bool


class Accounts:
    """Classic: pods run from their binding, and those without an annotation share one account. Else they run from the
    start of their containers, and their time until then is that of binding."""

    def __init__(
        self,
        mode: Mode = "lazy",
        default_slo: float = DEFAULT_SLO,
        default_acceptable: float = 1.0,
    ) -> None:
        self.mode, self.default_slo, self.default_acceptable = mode, default_slo, default_acceptable
        self._listeners: list[Callable[[Departure], None]] = []
        self.by_key: dict[str, OwnerAccount] = {}
        self.since: float | None = None  # the first event
        self.latest = -math.inf  # time never runs backwards here, whatever a wall clock does
        self._of: dict[str, OwnerAccount] = {}  # by uid
        self._binding: dict[str, float] = {}  # by uid: when its binding began
        self._idle: dict[str, float] = {}  # by key, the oldest first
        self._owned: dict[tuple[str, str, str], str] = {}  # key by owner

    def listen(self, departed: Callable[[Departure], None]) -> None:
        """It hears of every pod that leaves its slot from now on."""
        self._listeners.append(departed)

    # -- events

    def seen(self, pod: PodFacts, now: float) -> None:
        """As the API server has it."""
        if pod.namespace == SYSTEM:
            return
        now = self._tick(now)
        self._forget_idle(now)
        it = self.of(pod.uid)
        if it is None:
            if pod.ended or pod.deleted is not None:
                return
            it = self._open(pod, now)
        it.pod = pod
        account = self._of[pod.uid]
        account.version += 1
        self._refresh(account, it, pod, now)
        if pod.node:
            self._has_node(account, it, pod, now)
        if pod.ended:
            self._close(account, it, now, pod.phase == "Succeeded")
        elif pod.deleted is not None and it.current:
            self._depart(account, it, now, False)
            account.release(it)

    def gone(self, uid: str, now: float) -> None:
        if (it := self.of(uid)) is not None:
            self._close(self._of[uid], it, self._tick(now), False)
        self._binding.pop(uid, None)

    def binding(self, uid: str, now: float) -> None:
        if uid in self._of:
            self._binding[uid] = self._tick(now)

    def unbound(self, uid: str) -> None:
        """Its binding failed: it has waited on."""
        self._binding.pop(uid, None)

    def bound(self, uid: str, now: float) -> None:
        it = self.of(uid)
        if it is not None and it.clock.bind_start is None and not it.started:
            self._bound(self._of[uid], it, self._tick(now))

    def allocating(self, uid: str, yes: bool) -> None:
        if (account := self._of.get(uid)) is not None:
            account.version += 1
            (account.allocating.add if yes else account.allocating.discard)(uid)

    def owner_seen(self, owner: OwnerFacts, now: float) -> None:
        if (account := self._account_of(owner)) is not None and account.owners[0] == _owner_key(owner):
            slots = max(owner.slots, 0)
            account.version += 1
            account.wanted(account.identity._replace(slots=slots, completions=owner.completions), self._tick(now))

    def owner_gone(self, owner: OwnerFacts) -> None:
        """Its account goes with its last pod, unless others are on it."""
        if (account := self._account_of(owner)) is None:
            return
        account.owners.remove(_owner_key(owner))
        del self._owned[_owner_key(owner)]
        account.gone = not account.owners
        if account.gone and not account.live:
            self._forget(account.key)

    def settle(self, uids: Collection[str], now: float) -> None:
        """These are all pods that there are: others ended while nobody looked."""
        for uid in [uid for uid in self._of if uid not in uids]:
            self.gone(uid, now)

    def adopt(self, account: OwnerAccount, at: float) -> None:
        """One that was written down."""
        self.by_key[account.key] = account
        self._owned.update(dict.fromkeys(account.owners, account.key))
        self._of.update(dict.fromkeys(account.live, account))
        if not account.live:
            self._idle[account.key] = at

    # -- questions

    def of(self, uid: str) -> Incarnation | None:
        account = self._of.get(uid)
        return account.live.get(uid) if account else None

    def account(self, uid: str) -> OwnerAccount | None:
        return self._of.get(uid)

    def measure(self, uid: str, now: float) -> Measure | None:
        it = self.of(uid)
        return self._of[uid].measure(it, max(now, self.latest), self.default_acceptable) if it else None

    def sorted(self) -> Iterator[OwnerAccount]:
        return iter(sorted(self.by_key.values(), key=lambda account: (account.identity.shown, account.key)))

    # -- inside

    def _tick(self, now: float) -> float:
        self.latest = max(self.latest, now)
        return self.latest

    def _open(self, pod: PodFacts, now: float) -> Incarnation:
        identity = self._identified(pod)
        self.since = now if self.since is None else self.since
        account = self.by_key.get(identity.key)
        if account is None:
            account = self.by_key[identity.key] = OwnerAccount(identity.key, identity, now)
        if (owner := owner_of(pod)) is not None and len(account.owners) < MOST_OWNERS:
            self._own(account, _owner_key(owner))
        self._idle.pop(identity.key, None)
        self._of[pod.uid] = account
        return account.open(pod, identity, min(pod.created or now, now))

    def _own(self, account: OwnerAccount, owner: tuple[str, str, str]) -> None:
        if owner not in self._owned:
            self._owned[owner] = account.key
            account.owners.append(owner)

    def _identified(self, pod: PodFacts) -> Identity:
        return identified(pod, self.default_slo, shared=self.mode == "classic")

    def _refresh(self, account: OwnerAccount, it: Incarnation, pod: PodFacts, now: float) -> None:
        """Annotations can change, and owners be scaled; whose account it is on stays."""
        identity = self._identified(pod)._replace(key=account.key, name=account.identity.name)
        if identity != it.identity:
            it.identity = identity
        if identity != account.identity and _speaks_for(pod, account):
            account.wanted(identity, now)

    def _has_node(self, account: OwnerAccount, it: Incarnation, pod: PodFacts, now: float) -> None:
        if it.clock.bind_start is None and not it.started:
            if pod.started is not None and pod.uid not in self._binding:
                account.run(it, min(pod.started, now), now)  # it ran before anybody looked
            else:
                self._bound(account, it, now)
        if pod.started is not None and not it.started:
            account.run(it, min(pod.started, now), now)

    def _bound(self, account: OwnerAccount, it: Incarnation, now: float) -> None:
        account.version += 1
        account.allocating.discard(it.pod.uid)
        account.bind(it, self._binding.pop(it.pod.uid, now))
        if self.mode == "classic":
            account.run(it, now, now)

    def _close(self, account: OwnerAccount, it: Incarnation, now: float, succeeded: bool) -> None:
        if it.current:
            self._depart(account, it, now, succeeded)
        account.version += 1
        account.close(it, now, succeeded)
        del self._of[it.pod.uid]
        if not account.live:
            if account.gone:
                self._forget(account.key)
            else:
                self._idle[account.key] = now

    def _depart(self, account: OwnerAccount, it: Incarnation, now: float, succeeded: bool) -> None:
        if self._listeners:
            measure = account.measure(it, now, self.default_acceptable)
            departure = Departure(account, it, measure, now, succeeded)
            for departed in self._listeners:
                departed(departure)

    def _forget_idle(self, now: float) -> None:
        while self._idle and (now - next(iter(self._idle.values())) > IDLE_S or len(self._idle) > MOST_IDLE):
            self._forget(next(iter(self._idle)))

    def _forget(self, key: str) -> None:
        self._idle.pop(key, None)
        for owner in self.by_key.pop(key).owners:
            self._owned.pop(owner, None)

    def _account_of(self, owner: OwnerFacts) -> OwnerAccount | None:
        key = self._owned.get(_owner_key(owner))
        return None if key is None else self.by_key.get(key)


def _speaks_for(pod: PodFacts, account: OwnerAccount) -> bool:
    """Of several owners on one account, the first one does."""
    if not account.owners:
        return account.key != NOBODY
    owner = owner_of(pod)
    return owner is not None and account.owners[0] == _owner_key(owner)


def _owner_key(owner: OwnerFacts) -> tuple[str, str, str]:
    return owner.namespace, owner.kind, owner.name
