from j10ce_cheap_nodes import CheapNodes

from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.cycle.decisions import Bind, Defer
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler


def scheduler(plugin: CheapNodes, **prices: str) -> Scheduler:
    made = Scheduler([profile("ours", [plugin])])
    for name, price in prices.items():
        made.put_node(NodeFacts(name, {plugin.config.label: price}, {"cpu": 4000, "pods": 110}), 0.0)
    made.put_pod(PodFacts("u", "default", "web", scheduler="ours"), 0.0)
    return made


def test_the_cheapest_node_is_taken() -> None:
    assert [d.node for d in scheduler(CheapNodes(), a="12", b="7", c="9").step(1.0) if isinstance(d, Bind)] == ["b"]


def test_a_node_that_costs_too_much_is_not_taken() -> None:
    out = scheduler(CheapNodes(CheapNodes.Config(most=5)), a="12", b="7").step(1.0)
    assert [d.why for d in out if isinstance(d, Defer)] == ["0/2 nodes are available: 2 node(s) cost more than 5."]


def test_a_price_that_is_no_number_is_the_most_that_is_paid() -> None:
    assert [d.node for d in scheduler(CheapNodes(), a="cheap", b="7").step(1.0) if isinstance(d, Bind)] == ["b"]
