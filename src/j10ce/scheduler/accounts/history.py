"""What of accounts is written down, to be read after a restart or by who takes over: plain data with a version.

Of pods that are there the clocks are kept, of those that ended the sums. Its size goes with the number of slots.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from j10ce.errors import Finding, Invalid
from j10ce.scheduler.accounts.account import Incarnation, OwnerAccount
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.clock import PodClock
from j10ce.scheduler.accounts.flow import Flows
from j10ce.scheduler.accounts.identity import Approach, Identity
from j10ce.scheduler.accounts.online import Online
from j10ce.scheduler.book.facts import PodFacts

VERSION: Final = 1
MOST_ACCOUNTS: Final = 100_000
MOST_S: Final = 1e12  # when something may have happened, and what may add up: digits of seconds are left beside it


class LivePod(Struct, frozen=True, array_like=True):
    uid: str
    namespace: str
    name: str
    slot: int
    holds: bool
    created: float
    bind_start: float | None
    run_start: float | None


class Ended(Struct, frozen=True, array_like=True):
    """Of one slot, in seconds: what pods that are gone have added up to."""

    waiting: float
    binding: float
    running: float
    killed: float
    incarnations: int


class Kept(Struct, frozen=True, array_like=True):
    key: str
    slo: float
    approach: Approach
    acceptable: float | None
    slots: int
    completions: int
    succeeded: int
    owners: tuple[tuple[str, str, str], ...]
    at_once: tuple[float, float]
    ended: tuple[Ended, ...]
    live: tuple[LivePod, ...]
    name: str = ""


class History(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    at: float
    since: float | None
    accounts: tuple[Kept, ...]


def taken(accounts: Accounts, now: float, most: int = MOST_ACCOUNTS) -> dict[str, Any]:
    """Those with pods go first, if there are more than `most`."""
    now = max(now, accounts.latest)
    kept = sorted(accounts.sorted(), key=lambda account: not account.live)[:most]
    history = History(VERSION, now, accounts.since, tuple(_kept(account, now) for account in kept))
    plain: dict[str, Any] = msgspec.to_builtins(history)
    return plain


def restore(plain: object, accounts: Accounts, now: float = math.inf) -> None:
    """Into accounts that have seen nothing yet. Follow it by `settle`: pods may have ended meanwhile. What was written
    later than `now`, by a clock that was ahead of ours, is as if it were written now: else time would stand still."""
    try:
        history = msgspec.convert(plain, History)
    except msgspec.ValidationError as error:
        raise Invalid([Finding("history", None, str(error), "delete it: accounts begin anew")]) from None
    if history.version != VERSION:
        raise Invalid([Finding("history.version", history.version, f"only version {VERSION} is understood")])
    if not 0 <= history.at <= MOST_S:
        raise Invalid([Finding("history.at", history.at, "no time of this age", "delete it: accounts begin anew")])
    if findings := [Finding("history.accounts", key, problem) for key, problem in _problems(history)]:
        raise Invalid(findings)
    ahead = max(history.at - now, 0.0)
    at, since = history.at - ahead, history.since
    accounts.since, accounts.latest = None if since is None else min(since, at), max(at, accounts.latest)
    for kept in history.accounts:
        accounts.adopt(_account(_earlier(kept, ahead) if ahead else kept, at), at)


def _problems(history: History) -> Iterator[tuple[str, str]]:
    """Keys of accounts that nobody wrote down like this."""
    keys = Counter(kept.key for kept in history.accounts)
    uids = Counter(pod.uid for kept in history.accounts for pod in kept.live)
    for kept in history.accounts:
        holders = Counter(pod.slot for pod in kept.live if pod.holds)
        stamps = [s for p in kept.live for s in (p.created, p.bind_start, p.run_start) if s is not None]
        sums = [*kept.at_once, *(amount for ended in kept.ended for amount in msgspec.structs.astuple(ended))]
        if any(not 0 <= pod.slot < len(kept.ended) for pod in kept.live):
            yield kept.key, "a pod has a slot that is not there"
        elif keys[kept.key] > 1 or any(uids[pod.uid] > 1 for pod in kept.live) or max(holders.values(), default=0) > 1:
            yield kept.key, "an account, a pod or the pod of a slot is there twice"
        elif not 0 <= kept.slo <= 1 or kept.slots < 0:
            yield kept.key, "its SLO is no share, or it has fewer slots than none"
        elif any(not 0 <= stamp <= history.at for stamp in stamps) or any(abs(amount) > MOST_S for amount in sums):
            yield kept.key, "a time is later than the history, or lasts too long"


def _earlier(kept: Kept, seconds: float) -> Kept:
    live = tuple(
        replace(
            pod,
            created=pod.created - seconds,
            bind_start=None if pod.bind_start is None else pod.bind_start - seconds,
            run_start=None if pod.run_start is None else pod.run_start - seconds,
        )
        for pod in kept.live
    )
    return replace(kept, live=live)


def _kept(account: OwnerAccount, now: float) -> Kept:
    identity, clocks = account.identity, dict[int, list[PodClock]]()
    for it in account.live.values():
        clocks.setdefault(it.slot.number, []).append(it.clock)
    return Kept(
        account.key,
        identity.slo,
        identity.approach,
        identity.acceptable,
        identity.slots,
        identity.completions,
        account.succeeded,
        tuple(account.owners),
        account.online.sums(now),
        tuple(_ended(slot.flows, clocks.get(slot.number, []), now) for slot in account.slots),
        tuple(
            LivePod(
                *(uid, it.pod.namespace, it.pod.name, it.slot.number, it.current),
                *(it.clock.created, it.clock.bind_start, it.clock.run_start),
            )
            for uid, it in account.live.items()
        ),
        identity.name,
    )


def _ended(flows: Flows, live: list[PodClock], now: float) -> Ended:
    since = now - flows.origin
    return Ended(
        flows.waiting.at(since) - sum(clock.waiting(now) for clock in live),
        flows.binding.at(since) - sum(clock.binding(now) for clock in live),
        flows.running.at(since) - sum(clock.running(now) for clock in live),
        flows.killed,
        flows.incarnations - len(live),
    )


def _account(kept: Kept, at: float) -> OwnerAccount:
    identity = Identity(kept.key, kept.slo, kept.approach, kept.acceptable, kept.slots, kept.completions, (), kept.name)
    account = OwnerAccount(kept.key, identity, at)
    account.succeeded, account.owners = kept.succeeded, list(kept.owners)
    for ended in kept.ended:
        account.remember(ended.waiting, ended.binding, ended.running, ended.killed, ended.incarnations)
    for pod in sorted(kept.live, key=lambda pod: not pod.holds):
        facts, clock = PodFacts(pod.uid, pod.namespace, pod.name), PodClock(pod.created, pod.bind_start, pod.run_start)
        account.resume(Incarnation(facts, identity, clock, account.slots[pod.slot]), pod.holds)
    account.resumed()
    account.online = Online(kept.slots, at, *kept.at_once, sum(it.started for it in account.live.values()))
    return account
