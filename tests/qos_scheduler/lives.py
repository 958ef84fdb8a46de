"""Pods that live: what happens to them, second by second, told to accounts; what those say in the end.

`at` in seconds. A pod is `created`, `binding` (before its binding), `unbound` (it failed), `bound`, `running` (its
containers), `terminating`, `succeeded`, `failed`, and `gone`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from j10ce.scheduler.accounts.accounts import Accounts, Departure
from j10ce.scheduler.accounts.line import line
from j10ce.scheduler.accounts.table import narrow, wide
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from j10ce.scheduler.plugins.qos.following import QosFollower
from tests.qos_scheduler.measured import account_of

START: Final = 1_000_000.0  # a creation at 0 is one that nobody knows
NODE: Final = "n"


class Lives:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self.accounts = Accounts(given.get("mode", "classic"))
        self.follower = QosFollower(self.accounts)
        self.departures: list[Departure] = []
        self.accounts.listen(self.departures.append)
        self.pods: dict[str, PodFacts] = {}
        self._given = given
        for event in given["events"]:
            self.happen(event["pod"], event["what"], START + event["at"])

    def happen(self, name: str, what: str, now: float) -> None:
        pod = self.pods.get(name)
        match what:
            case "created":
                self.see(self.created(name, now), now)
            case "binding":
                self.follower.pre_bind(self.pods[name], NODE, now)
            case "unbound":
                self.follower.unreserve(self.pods[name], NODE, now)
            case "bound":
                self.follower.post_bind(self.pods[name], NODE, now)
            case "gone":
                self.follower.pod_gone(self.pods.pop(name), now)
            case _ if pod is not None:
                self.see(became(pod, what, now), now)

    def created(self, name: str, now: float) -> PodFacts:
        given = self._given
        annotations = {"controller": "c", "slo": str(given["slo"])}
        annotations |= {"qosMeasuring": given["approach"]} if "approach" in given else {}
        owner = OwnerFacts(given.get("owner_kind", "Deployment"), "default", "c", slots=given.get("slots", 1))
        return PodFacts(name, given.get("namespace", "default"), name, {}, {}, annotations, created=now, owner=owner)

    def see(self, pod: PodFacts, now: float) -> None:
        self.pods[pod.name] = pod
        self.follower.pod_seen(pod, now)


def became(pod: PodFacts, what: str, now: float) -> PodFacts:
    match what:
        case "running":
            return pod._replace(node=NODE, phase="Running", started=now)
        case "terminating":
            return pod._replace(deleted=now)
        case "succeeded" | "failed":
            return pod._replace(node=NODE, phase="Succeeded" if what == "succeeded" else "Failed")
        case _:
            raise ValueError(f"a pod does not become {what!r}")


def lived(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of `pod` at `now`, and what was logged."""
    lives, now = Lives(given), START + given["now"]
    log = [line(departure) for departure in lives.departures]
    uid = given["pod"]
    account, it, measure = lives.accounts.account(uid), lives.accounts.of(uid), lives.accounts.measure(uid, now)
    if account is None or it is None or measure is None:
        return {"followed": False, "log": log, "controllers": len(lives.accounts.by_key)}
    clock, sums, counts = it.clock, measure.sums, measure.pods
    return {
        "followed": True,
        "slot": it.slot.number,
        "current": it.current,
        "waiting": clock.waiting(now),
        "binding": clock.binding(now),
        "running": clock.running(now),
        "controller_waiting": sums.waiting,
        "controller_binding": sums.binding,
        "effective": sums.effective,
        "discarded": sums.discarded,
        "incarnations": sums.incarnations,
        "running_pods": counts.running,
        "pending_pods": counts.pending,
        "qos": measure.qos,
        "qos_metric": measure.metric,
        "contributing": measure.contributing,
        "succeeded": account.succeeded,
        "log": log,
    }


def shown(given: Mapping[str, Any]) -> str:
    """The table of controllers whose pods are as in the cases of metrics; `layout` is v1 or v2."""
    accounts = Accounts("classic", default_acceptable=given.get("default_acceptable_preemption_overhead", 1.0))
    for controller in given["controllers"]:
        whole = {"namespace": "default", "annotation_acceptable_preemption_overhead": None, **controller}
        accounts.adopt(account_of(controller["name"], whole), 0.0)
    return (wide if given["layout"] == "v2" else narrow)(accounts, given["now"])
