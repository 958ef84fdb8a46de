"""One random pod after another is given to stock kube-scheduler and to our default profile, in the same cluster.

The same pods find a node, the node that stock takes is one that we allow, and of pods that find none the same nodes are
refused for the same reasons. The node that we take is one of those that score best, reckoned without the engine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

from j10ce.model.kube.native import decode_native
from j10ce.model.kube.placing import PREFERRED, REQUIRED
from j10ce.model.kube.surroundings import WideNode
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.config.profiles import stock
from j10ce.scheduler.cycle.engine import Choice, Engine
from j10ce.scheduler.cycle.framework import Normalised, PreFilter, PreScore, Skip
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.profile import Profile
from j10ce.scheduler.reading.others import node_facts
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

PODS: Final = "/api/v1/namespaces/shop/pods"
NODES: Final = 12
ROUNDS: Final = 150
ZONE, RACK, HOST = "zone", "rack", "kubernetes.io/hostname"
TAINTS: Final = (
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "old", "effect": "PreferNoSchedule"},
    {"key": "leaving", "effect": "NoExecute"},
)


@pytest.fixture(scope="module")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if version == "old":
        pytest.skip("Unsupported: its messages name the taint; the rules are those of a current kube-scheduler")
    with running(tmp_path_factory.mktemp("differential"), version, controllers=True) as started:
        started.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        started.wait_for_account("shop")
        started.start_scheduler()
        yield started


@pytest.mark.kube
@pytest.mark.one_version
@pytest.mark.parametrize("seed", [1, 2])
def test_stock_and_ours_agree_about_every_pod(cluster: Cluster, seed: int) -> None:
    chance, ours = random.Random(seed), Ours()
    names = add_nodes(cluster, chance, ours, seed)
    there: list[str] = []
    refused = agreed = placed = 0
    for n in range(ROUNDS):
        if len(there) > 3 * NODES or (there and chance.random() < 0.15):
            name = there.pop(chance.randrange(len(there)))
            ours.book.remove_pod(cluster.call("GET", f"{PODS}/{name}")["metadata"]["uid"])
            remove(cluster, name)
        made = cluster.call("POST", PODS, pod(chance, f"p{seed}-{n}", names))
        pending = ours.read(made)
        decided = answer(cluster, made["metadata"]["name"])
        node, said = decided["spec"].get("nodeName", ""), message(decided)
        verdict = ours.engine.choose(pending)
        context = f"seed {seed}, pod {n}: {json.dumps(made['spec'])}\nstock: {node} {said}\nours: {verdict}"
        assert bool(node) == isinstance(verdict, Choice), context
        if node:
            best = ours.best(pending)
            agreed += node in best
            assert ours.allows(pending, node), context
            assert isinstance(verdict, Choice)
            assert ours.book.names[verdict.row] in best, context
            ours.book.put_pod(ours.read(decided))
            placed += 1
            there.append(made["metadata"]["name"])
        else:
            refused += 1
            assert said.startswith(str(verdict)), context
            remove(cluster, made["metadata"]["name"])
    for name in there:
        remove(cluster, name)
    for name in names:
        cluster.call("DELETE", f"/api/v1/nodes/{name}")
    print(f"seed {seed}: {refused} refused alike; stock took one of our best nodes {agreed} times of {placed}")
    assert ROUNDS // 20 < refused < ROUNDS * 19 // 20, "both kinds of answers came"


class Ours:
    def __init__(self) -> None:
        self.book, self.profile = Book(), stock("default-scheduler")
        self.engine = Engine(self.profile, self.book, Nominated(self.book))
        self._reader = PodReader(Owners().top)

    def read(self, obj: dict[str, Any]) -> PodFacts:
        facts = self._reader.read(json.dumps(obj).encode())
        assert facts is not None
        assert not facts.unjudged
        return facts

    def allows(self, pod: PodFacts, node: str) -> bool:
        return self.engine.fits(pod, self.book.row[node])

    def best(self, pod: PodFacts) -> set[str]:
        """The nodes of the highest total, reckoned without the engine."""
        rows = np.flatnonzero(self.book.alive[: len(self.book)])
        for f in self.profile.filters:
            if not (isinstance(f, PreFilter) and isinstance(f.pre_filter(pod, self.book), Skip)):
                rows = rows[f.filter(pod, self.book, rows)]
        total = totals(self.profile, pod, self.book, rows)
        return {self.book.names[row] for row in rows[total == total.max()]}


def totals(profile: Profile, pod: PodFacts, book: Book, rows: Any) -> Any:
    total = np.zeros(len(rows))
    for plugin, weight in profile.scores:
        if not (isinstance(plugin, PreScore) and isinstance(plugin.pre_score(pod, book, rows), Skip)):
            raw = plugin.score(pod, book, rows)
            total += weight * (plugin.normalise(raw) if isinstance(plugin, Normalised) else raw)
    return total


def add_nodes(cluster: Cluster, chance: random.Random, ours: Ours, seed: int) -> list[str]:
    names = [f"n{seed}-{n}" for n in range(NODES)]
    for name in names:
        labels = {HOST: name} | {key: chance.choice("abc") for key in (ZONE, RACK) if chance.random() < 0.8}
        amounts = {"cpu": str(chance.randint(1, 4)), "memory": f"{chance.randint(1, 4)}Gi", "pods": "5"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
        spec = {
            "taints": [taint for taint in TAINTS if chance.random() < 0.15],
            "unschedulable": chance.random() < 0.1,
        }
        patch = {"spec": {key: value for key, value in spec.items() if value} | {"taints": spec["taints"] or None}}
        cluster.call("PATCH", f"/api/v1/nodes/{name}", patch, content="application/merge-patch+json")
    cluster.wait("nodes as they are meant", lambda: settled(cluster, names))
    for name in names:
        text = json.dumps(cluster.call("GET", f"/api/v1/nodes/{name}"))
        ours.book.put_node(node_facts(decode_native(text.encode(), WideNode)))
    return names


def settled(cluster: Cluster, names: list[str]) -> bool:
    taints = [t for n in names for t in cluster.call("GET", f"/api/v1/nodes/{n}")["spec"].get("taints", [])]
    return all(t["key"] in ("gpu", "old", "leaving") or "unschedulable" in t["key"] for t in taints)


def pod(chance: random.Random, name: str, nodes: list[str]) -> dict[str, Any]:
    app = chance.choice(("web", "db", "cache"))
    requests = {"cpu": f"{chance.choice((0, 100, 500, 1500))}m", "memory": f"{chance.choice((0, 128, 700))}Mi"}
    container: dict[str, Any] = {"name": "c", "image": "none", "resources": {"requests": requests}}
    if chance.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": chance.choice((80, 81))}]
    spec: dict[str, Any] = {"containers": [container], "affinity": {}}
    if chance.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists", "key": chance.choice(("gpu", "old", "leaving"))}]
    if chance.random() < 0.15:
        spec["nodeSelector"] = {ZONE: chance.choice("abcd")}
    if chance.random() < 0.2:
        spec["affinity"]["nodeAffinity"] = node_affinity(chance)
    if chance.random() < 0.25:
        spec["affinity"][chance.choice(("podAffinity", "podAntiAffinity"))] = beside(chance)
    if chance.random() < 0.25:
        spec["topologySpreadConstraints"] = [spread(chance) for _ in range(chance.randint(1, 2))][:1]
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}


def node_affinity(chance: random.Random) -> dict[str, Any]:
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: dict[str, Any] = {"key": chance.choice((ZONE, RACK)), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = [chance.choice("abc")]
    term = {"matchExpressions": [expression]}
    if chance.random() < 0.5:
        return {REQUIRED: {"nodeSelectorTerms": [term]}}
    return {PREFERRED: [{"weight": chance.randint(1, 100), "preference": term}]}


def beside(chance: random.Random) -> dict[str, Any]:
    app = chance.choice(("web", "db", "cache"))
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": chance.choice((ZONE, RACK, HOST))}
    if chance.random() < 0.5:
        return {REQUIRED: [term]}
    return {PREFERRED: [{"weight": chance.randint(1, 100), "podAffinityTerm": term}]}


def spread(chance: random.Random) -> dict[str, Any]:
    soft = chance.random() < 0.4
    constraint: dict[str, Any] = {
        "maxSkew": chance.randint(1, 2),
        "topologyKey": chance.choice((ZONE, RACK, HOST)),
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": chance.choice(("web", "db"))}},
        "nodeTaintsPolicy": chance.choice(("Honor", "Ignore")),
        "nodeAffinityPolicy": chance.choice(("Honor", "Ignore")),
    }
    if not soft and chance.random() < 0.3:
        constraint["minDomains"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        constraint["matchLabelKeys"] = ["tier"]
    return constraint


def answer(cluster: Cluster, name: str) -> dict[str, Any]:
    """The pod, once it has a node or a reason why not."""
    seen: list[dict[str, Any]] = []

    def decided() -> bool:
        seen[:] = [cluster.call("GET", f"{PODS}/{name}")]
        return bool(seen[0]["spec"].get("nodeName") or message(seen[0]))

    cluster.wait(f"an answer about {name}", decided)
    return seen[0]


def message(obj: dict[str, Any]) -> str:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def remove(cluster: Cluster, name: str) -> None:
    cluster.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
