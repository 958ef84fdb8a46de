"""Each rule about nodes is a table of cases, and on random nodes that of a slow one that looks at each alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.scheduler.book.around import ClaimFacts, VolumeFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, PodFacts
from j10ce.scheduler.book.shape import (
    Affinity,
    NodeExpression,
    NodeTerm,
    PreferredNodeTerm,
    Shape,
    Toleration,
)
from j10ce.scheduler.book.suiting import bears
from j10ce.scheduler.cycle.framework import Filter, Refused, Skip
from j10ce.scheduler.plugins.nodes.affinity import NodeAffinity
from j10ce.scheduler.plugins.nodes.images import MIB, ImageLocality
from j10ce.scheduler.plugins.nodes.named import NodeName
from j10ce.scheduler.plugins.nodes.taints import TaintToleration
from j10ce.scheduler.plugins.nodes.unschedulable import NodeUnschedulable
from j10ce.scheduler.plugins.nodes.volumes import VolumeBinding
from tests.scheduler.book.oracle import meets, met

IN_A = NodeTerm((NodeExpression("zone", "In", ("a",)),))


def book_of(*nodes: NodeFacts) -> Book:
    book = Book()
    for node in nodes:
        book.put_node(node)
    return book


def pod(shape: Shape) -> PodFacts:
    return PodFacts("u", "shop", "web", shape)


def allowed(plugin: Filter, shape: Shape, *nodes: NodeFacts) -> list[bool]:
    book = book_of(*nodes)
    mask: list[bool] = plugin.filter(pod(shape), book, np.arange(len(book))).tolist()
    return mask


def node(name: str = "n", labels: dict[str, str] | None = None, *taints: NodeTaint, closed: bool = False) -> NodeFacts:
    return NodeFacts(name, labels or {}, {}, taints, closed)


TAINT = NodeTaint("k", "5", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "borne"),
    [
        pytest.param(Toleration("k", "Equal", "5", "NoSchedule"), TAINT, True, id="the same"),
        pytest.param(Toleration("k", "Equal", "6", "NoSchedule"), TAINT, False, id="another value"),
        pytest.param(Toleration("k", "Exists"), TAINT, True, id="any value and effect"),
        pytest.param(Toleration("", "Exists"), TAINT, True, id="everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), TAINT, False, id="everything of another effect"),
        pytest.param(Toleration("x", "Exists"), TAINT, False, id="another key"),
        pytest.param(Toleration("k", "Gt", "4"), TAINT, True, id="a number above"),
        pytest.param(Toleration("k", "Lt", "5"), TAINT, False, id="a number that is not below"),
        pytest.param(Toleration("k", "Lt", "many"), TAINT, False, id="no number"),
    ],
)
def test_a_toleration_bears_a_taint(toleration: Toleration, taint: NodeTaint, borne: bool) -> None:
    assert bears((toleration,), taint) is borne
    assert allowed(TaintToleration(), Shape(tolerations=(toleration,)), node("n", {}, taint)) == [borne]


@pytest.mark.parametrize(
    ("plugin", "shape", "nodes", "mask"),
    [
        pytest.param(NodeUnschedulable(), Shape(), [node(closed=True), node("b")], [False, True], id="cordoned"),
        pytest.param(
            NodeUnschedulable(),
            Shape(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),)),
            [node(closed=True)],
            [True],
            id="cordoned and borne",
        ),
        pytest.param(NodeName(), Shape(node_name="b"), [node("a"), node("b")], [False, True], id="by name"),
        pytest.param(NodeName(), Shape(node_name="c"), [node("a")], [False], id="a name that nobody has"),
        pytest.param(
            TaintToleration(), Shape(), [node("a", {}, NodeTaint("k", "", "PreferNoSchedule"))], [True], id="shy taint"
        ),
        pytest.param(
            NodeAffinity(),
            Shape(node_selector=(("zone", "a"),), affinity=Affinity((NodeTerm((NodeExpression("gpu", "Exists"),)),))),
            [node("a", {"zone": "a"}), node("b", {"zone": "a", "gpu": ""}), node("c", {"gpu": ""})],
            [False, True, False],
            id="selector and affinity both",
        ),
        pytest.param(NodeAffinity((IN_A,)), Shape(), [node("a", {"zone": "a"}), node("b")], [True, False], id="added"),
        pytest.param(NodeAffinity(), Shape(affinity=Affinity(())), [node("a")], [False], id="no terms at all"),
    ],
)
def test_filters(plugin: Filter, shape: Shape, nodes: Sequence[NodeFacts], mask: list[bool]) -> None:
    assert allowed(plugin, shape, *nodes) == mask


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        pytest.param(NodeUnschedulable(), "node(s) were unschedulable", id="cordoned"),
        pytest.param(NodeName(), "node(s) didn't match the requested node name", id="name"),
        pytest.param(TaintToleration(), "node(s) had untolerated taint(s)", id="taint"),
        pytest.param(NodeAffinity(), "node(s) didn't match Pod's node affinity/selector", id="affinity"),
        pytest.param(NodeAffinity(()), "node(s) didn't match scheduler-enforced node affinity", id="added"),
    ],
)
def test_reasons_are_those_of_kubernetes_and_evictions_do_not_help(plugin: Filter, reason: str) -> None:
    turned = plugin.why(pod(Shape()), book_of(node()), 0)
    assert turned.reasons == (reason,)
    assert not turned.resolvable


VALUES = st.sampled_from(["", "1", "2", "x"])
KEYS = st.sampled_from(["k", "zone"])
TAINTS = st.builds(NodeTaint, KEYS, VALUES, st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]))
NODES = st.lists(
    st.builds(
        lambda labels, taints: NodeFacts("", labels, {}, tuple(taints)),
        st.dictionaries(KEYS, VALUES),
        st.lists(TAINTS, max_size=3),
    ),
    min_size=1,
    max_size=24,
)
TOLERATIONS = st.builds(
    Toleration, KEYS | st.just(""), st.sampled_from(["Equal", "Exists", "Gt", "Lt"]), VALUES,
    st.sampled_from(["", "NoSchedule", "PreferNoSchedule"]),
)  # fmt: skip
EXPRESSIONS = st.builds(
    NodeExpression,
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(VALUES, max_size=2).map(tuple),
)
FIELDS = st.builds(
    NodeExpression, st.just("metadata.name"), st.sampled_from(["In", "NotIn"]), st.sampled_from([("n0",), ("n1",)])
)
TERMS = st.builds(NodeTerm, st.lists(EXPRESSIONS, max_size=2).map(tuple), st.lists(FIELDS, max_size=1).map(tuple))


def named(nodes: list[NodeFacts]) -> list[NodeFacts]:
    return [n._replace(name=f"n{i}") for i, n in enumerate(nodes)]


@given(NODES, NODES, st.lists(TOLERATIONS, max_size=3).map(tuple))
def test_taints_are_those_of_each_node_even_after_it_changed(
    before: list[NodeFacts], after: list[NodeFacts], tolerations: tuple[Toleration, ...]
) -> None:
    plugin, shape, book = TaintToleration(), Shape(tolerations=tolerations), Book()
    for nodes in (before, after):
        for n in named(nodes):
            book.put_node(n)
        rows = np.arange(len(book))
        there = [n for n in book.nodes if n is not None]
        keeps_away = [
            any(t.effect != "PreferNoSchedule" and not any(bears((x,), t) for x in tolerations) for t in n.taints)
            for n in there
        ]
        assert plugin.filter(pod(shape), book, rows).tolist() == [not away for away in keeps_away]
        soft = [t for t in tolerations if t.effect != "NoSchedule"]
        counts = [sum(t.effect == "PreferNoSchedule" and not bears(soft, t) for t in n.taints) for n in there]
        assert plugin.score(pod(shape), book, rows).tolist() == counts


@given(NODES, st.none() | st.lists(TERMS, max_size=3).map(tuple), st.lists(TERMS, max_size=3))
def test_affinity_is_that_of_each_node(
    nodes: list[NodeFacts], required: tuple[NodeTerm, ...] | None, preferred: list[NodeTerm]
) -> None:
    wishes = tuple(PreferredNodeTerm(n + 1, term) for n, term in enumerate(preferred))
    there, plugin, shape = named(nodes), NodeAffinity(), Shape(affinity=Affinity(required, wishes))
    book = book_of(*there)
    rows = np.arange(len(book))
    assert plugin.filter(pod(shape), book, rows).tolist() == [met(required, n.name, n.labels) for n in there]
    raw = [sum(w.weight for w in wishes if meets(w.term, n.name, n.labels)) for n in there]
    assert plugin.score(pod(shape), book, rows).tolist() == raw
    most = max(raw)
    assert plugin.normalise(np.array(raw, float)).tolist() == [100 * r // most if most else 0 for r in raw]


def test_shy_taints_are_avoided_where_there_is_another_node() -> None:
    assert TaintToleration().normalise(np.array([0.0, 1.0, 3.0])).tolist() == [100, 67, 0]
    assert TaintToleration().normalise(np.array([0.0, 0.0])).tolist() == [100, 100]


@pytest.mark.parametrize(
    ("sizes", "scores"),
    [
        pytest.param([None, None], None, id="nowhere"),
        pytest.param([500 * MIB, None], [23, 0], id="on half of the nodes it is worth half"),
        pytest.param([20 * MIB, 20 * MIB], None, id="too small to matter"),
        pytest.param([4000 * MIB, None], [100, 0], id="no more than 100"),
    ],
)
def test_images_that_are_there(sizes: list[int | None], scores: list[int] | None) -> None:
    nodes = [NodeFacts(f"n{n}", {}, {}, images={"web:1": s} if s else {}) for n, s in enumerate(sizes)]
    plugin, book, web = ImageLocality(), book_of(*nodes), pod(Shape(images=("web:1",)))
    rows = np.arange(len(book))
    skipped = isinstance(plugin.pre_score(web, book, rows), Skip)
    assert (None if skipped else plugin.score(web, book, rows).tolist()) == scores
    book.put_node(NodeFacts("n0", {}, {}, images={"web:1": 900 * MIB}))
    assert plugin.pre_score(web, book, rows) is None, "a node that changed is looked at again"


def with_claims(*claims: str) -> PodFacts:
    return pod(Shape())._replace(claims=claims)


def test_bound_volumes_are_honoured() -> None:
    book = book_of(node("a", {"zone": "a"}), node("b", {"zone": "b"}))
    book.around.put(ClaimFacts("shop", "disk", "v"))
    book.around.put(VolumeFacts("v", (IN_A,)))
    plugin, rows = VolumeBinding(), np.arange(2)
    assert plugin.pre_filter(with_claims("disk"), book) is None
    assert plugin.filter(with_claims("disk"), book, rows).tolist() == [True, False]
    assert plugin.why(with_claims("disk"), book, 1).reasons == (
        "node(s) didn't match PersistentVolume's node affinity",
    )
    assert plugin.pre_filter(with_claims(), book) == Skip()


@pytest.mark.parametrize(
    ("waiting", "says"),
    [
        pytest.param(with_claims("lost"), 'persistentvolumeclaim "lost" not found', id="no claim"),
        pytest.param(with_claims("open"), "binds none for its first consumer", id="awaits its consumer"),
        pytest.param(with_claims("gone"), 'bound to volume "w", which is not there', id="no volume"),
    ],
)
def test_what_cannot_be_judged_leaves_the_pod_pending(waiting: PodFacts, says: str) -> None:
    book = book_of(node("a"))
    book.around.put(ClaimFacts("shop", "open"))
    book.around.put(ClaimFacts("shop", "gone", "w"))
    refused = VolumeBinding().pre_filter(waiting, book)
    assert isinstance(refused, Refused)
    assert says in refused.reason
    assert not refused.resolvable
