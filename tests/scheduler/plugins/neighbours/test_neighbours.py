"""On random clusters, and while pods come, go and end there, the answers are those of the slow rules in `oracle`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.scheduler.book.around import NamespaceFacts, ServiceFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, OwnerFacts, PodFacts
from j10ce.scheduler.book.shape import (
    Affinity,
    HostPort,
    LabelTest,
    NodeExpression,
    PodTerm,
    Shape,
    SpreadConstraint,
    Toleration,
    WeightedPodTerm,
)
from j10ce.scheduler.cycle.framework import Skip
from j10ce.scheduler.plugins.neighbours.inter_pod import NOT_NEAR, TOO_NEAR, UNWELCOME, InterPodAffinity
from j10ce.scheduler.plugins.neighbours.ports import NodePorts
from j10ce.scheduler.plugins.neighbours.spread import LOPSIDED, NO_DOMAIN, PodTopologySpread
from tests.scheduler.plugins.neighbours import oracle
from tests.scheduler.plugins.neighbours.oracle import Scene

HOST, ZONE = "kubernetes.io/hostname", "zone"
NAMESPACES = {"shop": {"team": "a"}, "bank": {"team": "b"}}
MANY = settings(max_examples=200, deadline=None)


def nodes(*labels: dict[str, str]) -> list[NodeFacts]:
    return [NodeFacts(f"n{i}", {HOST: f"n{i}"} | own, {}) for i, own in enumerate(labels)]


NODES = st.lists(
    st.builds(
        lambda labels, tainted: NodeFacts("", labels, {}, (NodeTaint("k", "", "NoSchedule"),) if tainted else ()),
        st.dictionaries(st.sampled_from([ZONE, "rack"]), st.sampled_from("ab")),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
).map(lambda each: [n._replace(name=f"n{i}", labels={HOST: f"n{i}"} | n.labels) for i, n in enumerate(each)])
LABELS = st.dictionaries(st.just("app"), st.sampled_from(["web", "db"]))
TESTS = st.sampled_from(
    [
        LabelTest((("app", "web"),)),
        LabelTest((), (NodeExpression("app", "Exists"),)),
        LabelTest((), (NodeExpression("app", "NotIn", ("db",)),)),
        LabelTest(),
        None,
    ]
)
KEYS = st.sampled_from([ZONE, "rack", HOST])
PODTERMS = st.builds(
    PodTerm,
    TESTS,
    KEYS,
    st.lists(st.sampled_from(["shop", "bank"]), max_size=1).map(tuple),
    st.none() | st.sampled_from([LabelTest(), LabelTest((("team", "b"),))]),
)
FEW_TERMS = st.lists(PODTERMS, max_size=2).map(tuple)
WEIGHED = st.lists(st.builds(WeightedPodTerm, st.integers(1, 5), PODTERMS), max_size=1).map(tuple)
AFFINITIES = st.builds(
    lambda pods, soft, anti, soft_anti: Affinity(None, (), pods, soft, anti, soft_anti),
    FEW_TERMS, WEIGHED, FEW_TERMS, WEIGHED,
)  # fmt: skip
SPREADS = st.lists(
    st.builds(
        SpreadConstraint,
        st.integers(1, 2),
        KEYS,
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        TESTS,
        st.integers(1, 3),
        st.sampled_from(["Honor", "Ignore"]),
        st.sampled_from(["Honor", "Ignore"]),
    ),
    max_size=2,
).map(tuple)
SHAPES = st.builds(
    lambda affinity, spread, selector, tolerations: Shape(
        affinity=affinity, spread=spread, node_selector=selector, tolerations=tolerations
    ),
    st.just(Affinity()) | AFFINITIES,
    SPREADS,
    st.sampled_from([(), ((ZONE, "a"),)]),
    st.sampled_from([(), (Toleration("k", "Exists"),)]),
)
PODS = st.builds(
    lambda namespace, labels, shape, node, ends: PodFacts(
        "", namespace, "p", shape, labels, node=f"n{node}", deleted=1.0 if ends else None
    ),
    st.sampled_from(["shop", "bank"]), LABELS, SHAPES, st.integers(0, 7), st.booleans(),
)  # fmt: skip


def numbered(pods: list[PodFacts], start: int = 0) -> list[PodFacts]:
    return [pod._replace(uid=f"p{start + n}") for n, pod in enumerate(pods)]


def book_of(scene: Scene) -> Book:
    book = Book()
    for name, labels in scene.namespaces.items():
        book.around.put(NamespaceFacts(name, labels))
    for node in scene.nodes:
        book.put_node(node)
    for pod in scene.pods:
        book.put_pod(pod)
    return book


def reasons(plugin: PodTopologySpread | InterPodAffinity, pod: PodFacts, book: Book) -> dict[str, str]:
    """What is said of every node that is there; empty: it is allowed."""
    rows = np.flatnonzero(book.alive[: len(book)])
    words = {NO_DOMAIN: "no domain", LOPSIDED: "lopsided", NOT_NEAR: "not near", TOO_NEAR: "too near"}
    said = {book.names[row]: "" for row in rows}
    if not isinstance(plugin.pre_filter(pod, book), Skip):
        mask = plugin.filter(pod, book, rows)
        for turned, those in plugin.whys(pod, book, rows[~mask]):
            said |= {book.names[row]: words.get(turned, "unwelcome") for row in those}
            assert all(plugin.why(pod, book, int(row)) == turned for row in those)
        assert [bool(said[book.names[row]]) for row in rows] == (~mask).tolist()
    return said


@MANY
@given(NODES, st.lists(PODS, max_size=8), st.lists(PODS, max_size=4), PODS, st.data())
def test_answers_are_those_of_the_slow_rules_whoever_came_and_went(
    there: list[NodeFacts], before: list[PodFacts], more: list[PodFacts], newcomer: PodFacts, data: st.DataObject
) -> None:
    pods, pod = numbered(before), newcomer._replace(uid="new", node="")
    scene = Scene(there, pods, NAMESPACES)
    book, spread, beside = book_of(scene), PodTopologySpread(), InterPodAffinity(2)
    agree(scene, book, pod, spread, beside)
    gone = data.draw(st.lists(st.sampled_from(pods), unique_by=lambda p: p.uid)) if pods else []
    for each in gone:
        book.remove_pod(each.uid)
    come = numbered(more, len(pods))
    for each in come:
        book.put_pod(each)
    book.put_node(there[0]._replace(labels={HOST: "n0", ZONE: "b"}))
    book.around.put(NamespaceFacts("bank", {"team": "a"}))
    left = [p for p in pods if p not in gone]
    changed = Scene(
        [there[0]._replace(labels={HOST: "n0", ZONE: "b"}), *there[1:]],
        [*left, *come],
        NAMESPACES | {"bank": {"team": "a"}},
    )
    agree(changed, book, pod, spread, beside)


def agree(scene: Scene, book: Book, pod: PodFacts, spread: PodTopologySpread, beside: InterPodAffinity) -> None:
    assert reasons(spread, pod, book) == {n.name: oracle.spread_refuses(scene, pod, n) for n in scene.nodes}
    assert reasons(beside, pod, book) == {n.name: oracle.beside_refuses(scene, pod, n) for n in scene.nodes}
    rows = np.array([book.row[n.name] for n in scene.nodes])
    for fitting in (rows, rows[:-1]):
        kept = scene.nodes[: len(fitting)]
        if pod.shape.spread and not isinstance(spread.pre_score(pod, book, fitting), Skip):
            assert spread.score(pod, book, fitting).tolist() == oracle.spread_scores(scene, pod, kept)
        if isinstance(beside.pre_score(pod, book, fitting), Skip):
            assert not any(oracle.beside_scores(scene, pod, kept, 2))
        else:
            assert beside.score(pod, book, fitting).tolist() == oracle.beside_scores(scene, pod, kept, 2)


WEB = LabelTest((("app", "web"),))
IS_WEB = {"app": "web"}


def web(uid: str, node: str = "", shape: Shape | None = None, namespace: str = "shop") -> PodFacts:
    return PodFacts(uid, namespace, uid, shape or Shape(), IS_WEB, node=node)


def constraint(skew: int = 1, key: str = ZONE, least: int = 1) -> SpreadConstraint:
    return SpreadConstraint(skew, key, "DoNotSchedule", WEB, least)


@pytest.mark.parametrize(
    ("spread", "places", "said"),
    [
        pytest.param(constraint(), ["n0"], ["lopsided", "lopsided", ""], id="the other zone"),
        pytest.param(constraint(2), ["n0"], ["", "", ""], id="one more is borne"),
        pytest.param(constraint(), ["n0", "n2"], ["", "", ""], id="even already"),
        pytest.param(constraint(1, ZONE, 3), [], ["", "", ""], id="too few domains, nobody there"),
        pytest.param(constraint(1, ZONE, 3), ["n0", "n2"], ["lopsided"] * 3, id="too few domains"),
        pytest.param(constraint(1, HOST), ["n0", "n1"], ["lopsided", "lopsided", ""], id="nodes"),
        pytest.param(constraint(1, "rack"), [], ["no domain"] * 3, id="no node has the label"),
    ],
)
def test_spreading(spread: SpreadConstraint, places: list[str], said: list[str]) -> None:
    there = nodes({ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"})
    book = book_of(Scene(there, [web(f"p{n}", node) for n, node in enumerate(places)], {}))
    assert list(reasons(PodTopologySpread(), web("new", "", Shape(spread=(spread,))), book).values()) == said


def near(selector: LabelTest = WEB, key: str = ZONE) -> Shape:
    return Shape(affinity=Affinity(pods=(PodTerm(selector, key),)))


def far(selector: LabelTest = WEB, key: str = ZONE) -> Shape:
    return Shape(affinity=Affinity(anti_pods=(PodTerm(selector, key),)))


DB = LabelTest((("app", "db"),))


@pytest.mark.parametrize(
    ("shape", "pods", "said"),
    [
        pytest.param(near(), [], ["", "", "not near"], id="the first of its kind may be alone, in a domain"),
        pytest.param(near(DB), [], ["not near"] * 3, id="nobody of the kind that it wants"),
        pytest.param(near(), [web("p", "n0")], ["", "not near", "not near"], id="beside the others"),
        pytest.param(near(), [web("p", "n0", None, "bank")], ["", "", "not near"], id="another namespace"),
        pytest.param(far(), [web("p", "n0")], ["too near", "", ""], id="far from its kind"),
        pytest.param(Shape(), [web("p", "n0", far())], ["unwelcome", "", ""], id="the other wants to be alone"),
        pytest.param(far(), [web("p", "n2", far())], ["", "", ""], id="no domain, nobody near"),
    ],
)
def test_beside_and_far_away(shape: Shape, pods: list[PodFacts], said: list[str]) -> None:
    book = book_of(Scene(nodes({ZONE: "a"}, {ZONE: "b"}, {}), pods, {}))
    assert list(reasons(InterPodAffinity(), web("new", "", shape), book).values()) == said


def test_evictions_help_where_pods_are_in_the_way_and_nowhere_else() -> None:
    assert [t.resolvable for t in (LOPSIDED, NO_DOMAIN, NOT_NEAR, TOO_NEAR, UNWELCOME)] == [
        True,
        False,
        False,
        True,
        True,
    ]


def port(number: int, protocol: str = "TCP", address: str = "0.0.0.0") -> HostPort:
    return HostPort(number, protocol, address)


@pytest.mark.parametrize(
    ("asked", "used", "free"),
    [
        pytest.param(port(80), port(80), False, id="the same"),
        pytest.param(port(80), port(81), True, id="another port"),
        pytest.param(port(80), port(80, "UDP"), True, id="another protocol"),
        pytest.param(port(80), port(80, "TCP", "10.0.0.1"), False, id="all addresses need each"),
        pytest.param(port(80, "TCP", "10.0.0.1"), port(80), False, id="all addresses are taken"),
        pytest.param(port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.2"), True, id="another address"),
    ],
)
def test_ports_of_the_node(asked: HostPort, used: HostPort, free: bool) -> None:
    book = book_of(Scene(nodes({}, {}), [], {}))
    plugin, pod, rows = NodePorts(), web("new", "", Shape(ports=(asked,))), np.arange(2)
    assert plugin.filter(pod, book, rows).all()
    book.put_pod(web("p", "n1", Shape(ports=(used,))))
    assert plugin.filter(pod, book, rows).tolist() == [True, free]
    book.remove_pod("p")
    assert plugin.filter(pod, book, rows).all()
    assert isinstance(plugin.pre_filter(web("x"), book), Skip)


def test_pods_that_do_not_say_how_are_spread_as_their_services_and_owners_are() -> None:
    zones = "topology.kubernetes.io/zone"
    book = book_of(Scene(nodes({zones: "a"}, {zones: "b"}), [web("p", "n0")], {}))
    plugin, rows, pod = PodTopologySpread(), np.arange(2), web("new")
    assert isinstance(plugin.pre_score(pod, book, rows), Skip), "nobody is like it"
    owned = pod._replace(owner=OwnerFacts("Deployment", "shop", "web", selector=WEB))
    assert plugin.score(owned, book, rows).tolist() == oracle_defaults(zones, book, owned)
    assert isinstance(plugin.pre_score(owned._replace(owner=owned.owner._replace(kind="Job")), book, rows), Skip)
    book.around.put(ServiceFacts("shop", "web", WEB))
    scores = plugin.score(pod, book, rows)
    assert scores[1] == 100
    assert scores[0] < 100
    assert isinstance(plugin.pre_filter(pod, book), Skip)


def oracle_defaults(zones: str, book: Book, pod: PodFacts) -> list[int]:
    spread = (
        SpreadConstraint(3, HOST, "ScheduleAnyway", WEB),
        SpreadConstraint(5, zones, "ScheduleAnyway", WEB),
    )
    there = [node for node in book.nodes if node is not None]
    scene = Scene(there, list(book.pods.values()), {})
    return oracle.spread_scores(scene, pod._replace(shape=Shape(spread=spread)), there)
