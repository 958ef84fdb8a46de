"""A pod that fits nowhere: which node it gets, and who has to go there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.around import BudgetFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import LabelTest, Shape
from j10ce.scheduler.cycle.engine import Engine
from j10ce.scheduler.cycle.framework import Candidate
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from tests.qos_scheduler.measured import account_of

MILLI: Final = 1000


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """Pods are as in the cases of metrics, with the `node` and `cpu` that they have."""
    plugin = QosAware(
        QosSettings("classic", safety_margin_s=given["safety_margin_s"], minimum_running_s=given["min_running_s"]),
        Accounts("classic"),
    )
    book, pods = Book(), dict[str, PodFacts]()
    for node in given["nodes"]:
        book.put_node(NodeFacts(node["name"], {}, {"cpu": round(node["cpu"] * MILLI), "pods": 110}))
    for controller in given["controllers"]:
        pods |= followed(plugin.accounts, controller)
    for pod in pods.values():
        book.put_pod(pod)
    for n, budget in enumerate(given.get("budgets", ())):
        book.around.put(BudgetFacts("default", str(n), LabelTest((("name", budget["pod"]),)), budget["allowed"]))
    pending = pods[given["pending"]]
    engine = Engine(profile("s", [plugin, NodeResourcesFit()]), book, Nominated(book))
    rows = np.array([row for row in range(len(book)) if not engine.fits(pending, row)], np.int64)
    answer = plugin.post_filter(pending, rows, engine, given["now"])
    if not isinstance(answer, Candidate):
        return {"node": None, "victims": []}
    return {"node": answer.node, "victims": sorted(victim.name for victim in answer.victims)}


def followed(accounts: Accounts, controller: Mapping[str, Any]) -> dict[str, PodFacts]:
    """The account of a controller, and its pods as the book has them."""
    whole = {"namespace": "default", "annotation_acceptable_preemption_overhead": None, **controller}
    account = account_of(controller["name"], whole)
    accounts.adopt(account, 0.0)
    by_name = {each["name"]: each for replica in controller["replicas"] for each in replica}
    there = dict[str, PodFacts]()
    for it in account.live.values():
        about = by_name[it.pod.name]
        cpu = round(about.get("cpu", 1) * MILLI)
        running = it.clock.run_start is not None
        it.pod = it.pod._replace(
            shape=Shape((("cpu", cpu),), (cpu, 0)),
            namespace=about.get("namespace", whole["namespace"]),
            labels={"name": about.get("label", it.pod.name)},
            node=about.get("node", ""),
            phase=about.get("phase", "Running" if running else "Pending"),
            deleted=about.get("deleted"),
            preempts=controller.get("preemption_policy") != "Never",
        )
        there[it.pod.name] = it.pod
    return there
