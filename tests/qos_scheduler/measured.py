"""The metric of a case: an account that is made of its stamps is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from j10ce.scheduler.accounts.account import Incarnation, OwnerAccount
from j10ce.scheduler.accounts.clock import PodClock
from j10ce.scheduler.accounts.identity import SYSTEM, Approach, Identity, acceptable_overhead
from j10ce.scheduler.accounts.measure import PodCounts, ServiceSums, metric, preemption_overhead
from j10ce.scheduler.accounts.online import Online
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from tests.scheduler.accounts.oracle import Stamps, expected

Answers = dict[str, Any]


def measured(given: Mapping[str, Any]) -> Answers:
    """By the account. Where that says otherwise than a recomputation, the case is not met: both are shown."""
    answers = by_stamps(given)
    if given["approach"] in get_args(Approach) and regular(given):
        quick = by_account(given)
        answers = {name: q if agree(q, answers[name]) else (q, answers[name]) for name, q in quick.items()}
    if given.get("namespace") == SYSTEM:
        answers["qos_metric"] = of_nobody(given["reference_pod"])
    return answers


def of_nobody(name: str) -> float:
    """The metric of a pod that nobody follows: it is in the key by which the queue is sorted."""
    classic = QosAware(QosSettings(mode="classic"))
    pod = PodFacts(name, SYSTEM, name)
    classic.pod_seen(pod, 0.0)
    return float(classic.queue_key(pod, 0.0)[-1])


def by_account(given: Mapping[str, Any]) -> Answers:
    account = account_of("k", given)
    about = account.live[given["reference_pod"]]
    about.pod = about.pod._replace(phase=given["reference_phase"])
    measure = account.measure(about, given["now"], given["default_acceptable_preemption_overhead"])
    counts = measure.pods.running, measure.pods.pending
    return answers(measure.sums, counts, measure.metric, measure.preemption_overhead, measure.acceptable)


def account_of(key: str, given: Mapping[str, Any]) -> OwnerAccount:
    replicas, acceptable = given["replicas"], given["annotation_acceptable_preemption_overhead"]
    identity = Identity(key, given["slo"], given["approach"], acceptable, len(replicas), 0)
    account = OwnerAccount(key, identity, 0.0)
    for slot, replica in enumerate(replicas):
        account.remember(*ended([clock_of(each) for each in replica if each["end"] is not None]))
        for each in (each for each in replica if each["end"] is None):
            facts = PodFacts(each["name"], given["namespace"], each["name"], phase=each.get("phase", "Pending"))
            it = Incarnation(facts, identity, clock_of(each), account.slots[slot])
            account.resume(it, each["current"])
    account.resumed()
    replay(account, [each for replica in replicas for each in replica])
    return account


def replay(account: OwnerAccount, incarnations: Sequence[Mapping[str, Any]]) -> None:
    """What ran at a time, edge by edge."""
    account.online = Online(account.identity.slots, 0.0)
    ran = [each for each in incarnations if each["run_start"] is not None]
    edges = [(each["run_start"], 1) for each in ran] + [(each["end"], -1) for each in ran if each["end"] is not None]
    for at, online in sorted(edges):
        account.online.moved(at, online=online)


def by_stamps(given: Mapping[str, Any]) -> Answers:
    now, approach, slo = given["now"], given["approach"], given["slo"]
    stamps = {
        each["name"]: Stamps(slot, *(each[name] for name in Stamps._fields[1:]))
        for slot, replica in enumerate(given["replicas"])
        for each in replica
    }
    phase, slots = given["reference_phase"], len(given["replicas"])
    want = expected(approach, [*stamps.values()], stamps[given["reference_pod"]], phase, slo, slots, now)
    sums = ServiceSums(want.effective, want.discarded, want.waiting, want.binding, want.incarnations)
    acceptable = acceptable_overhead(
        slo, given["annotation_acceptable_preemption_overhead"], given["default_acceptable_preemption_overhead"]
    )
    pods = PodCounts(want.running, want.pending, want.running - (phase == "Running"), slots)
    m = metric(approach, sums, slo, pods)
    return answers(sums, (want.running, want.pending), m, preemption_overhead(approach, sums), acceptable)


def answers(sums: ServiceSums, pods: tuple[int, int], m: float, overhead: float, acceptable: float) -> Answers:
    return {
        "waiting": sums.waiting,
        "binding": sums.binding,
        "effective": sums.effective,
        "discarded": sums.discarded,
        "estimated_overhead": sums.overhead,
        "running_pods": pods[0],
        "pending_pods": pods[1],
        "incarnations": sums.incarnations,
        "qos": sums.qos,
        "qos_metric": m,
        "preemption_overhead": overhead,
        "acceptable_preemption_overhead": acceptable,
    }


def clock_of(each: Mapping[str, Any]) -> PodClock:
    return PodClock(each["created"], each["bind_start"], each["run_start"], each["end"], each["succeeded"])


def ended(clocks: Sequence[PodClock]) -> tuple[float, float, float, float, int]:
    ends = [clock.end or 0.0 for clock in clocks]
    ran = [clock.running(0.0) for clock in clocks]
    killed = sum(seconds for seconds, clock in zip(ran, clocks, strict=True) if not clock.succeeded)
    waited = sum(clock.waiting(end) for clock, end in zip(clocks, ends, strict=True))
    bound = sum(clock.binding(end) for clock, end in zip(clocks, ends, strict=True))
    return waited, bound, sum(ran), killed, len(clocks)


def regular(given: Mapping[str, Any]) -> bool:
    """As events can make it: one holder for each slot, which has not ended, and no end in the midst of binding; and
    asked about is a pod that is there."""
    replicas = given["replicas"]
    there = (each for replica in replicas for each in replica if each["name"] == given["reference_pod"])
    return all(each["end"] is None for each in there) and all(
        sum(each["current"] for each in replica) <= 1
        and not any(each["current"] and each["end"] is not None for each in replica)
        and not any(
            each["end"] is not None and each["bind_start"] is not None and each["run_start"] is None for each in replica
        )
        for replica in replicas
    )


def agree(one: float, other: float) -> bool:
    return one == other or abs(one - other) < 1e-6 * max(1.0, abs(other)) or (one != one and other != other)
