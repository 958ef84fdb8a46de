"""Selectors choose as in Kubernetes, and what else is in the cluster is kept by namespace and name."""

from __future__ import annotations

import pytest

from j10ce.scheduler.book.around import Around, BudgetFacts, NamespaceFacts, VolumeFacts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, NodeExpression, NodeOperator, NodeTerm
from tests.scheduler.book.oracle import met

LABELS = {"app": "web", "size": "12"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "holds"),
    [
        pytest.param("In", "app", ("db", "web"), True, id="one of them"),
        pytest.param("In", "app", ("db",), False, id="none of them"),
        pytest.param("In", "tier", ("",), False, id="no label is not an empty one"),
        pytest.param("NotIn", "app", ("web",), False, id="forbidden"),
        pytest.param("NotIn", "tier", ("web",), True, id="NotIn holds without the label"),
        pytest.param("Exists", "app", (), True, id="there"),
        pytest.param("DoesNotExist", "app", (), False, id="should not be there"),
        pytest.param("Gt", "size", ("11",), True, id="greater"),
        pytest.param("Gt", "size", ("12",), False, id="equal is not greater"),
        pytest.param("Lt", "size", ("13",), True, id="less"),
        pytest.param("Lt", "app", ("13",), False, id="no number"),
        pytest.param("Gt", "size", ("x",), False, id="no bound"),
        pytest.param("Gt", "size", ("1_0",), False, id="Python's underscores are no digits"),
        pytest.param("Gt", "size", ("1", "2"), False, id="two bounds"),
    ],
)
def test_an_expression_holds_as_in_kubernetes(
    operator: NodeOperator, key: str, values: tuple[str, ...], holds: bool
) -> None:
    expression = NodeExpression(key, operator, values)
    assert chosen(LabelTest((), (expression,)), LABELS) is holds
    assert met((NodeTerm((expression,)),), "a", LABELS) is holds


def test_no_selector_chooses_nothing_and_an_empty_one_everything() -> None:
    assert not chosen(None, LABELS)
    assert chosen(LabelTest(), LABELS)


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        pytest.param(None, True, id="no wish"),
        pytest.param((), False, id="no terms"),
        pytest.param((NodeTerm(),), False, id="a term without parts"),
        pytest.param((NodeTerm(), NodeTerm((NodeExpression("app", "Exists"),))), True, id="one is enough"),
        pytest.param((NodeTerm((), (NodeExpression("metadata.name", "In", ("a",)),)),), True, id="by name"),
        pytest.param((NodeTerm((), (NodeExpression("metadata.name", "NotIn", ("a",)),)),), False, id="not by name"),
    ],
)
def test_terms_of_nodes(terms: tuple[NodeTerm, ...] | None, holds: bool) -> None:
    assert met(terms, "a", LABELS) is holds


def test_facts_are_kept_by_namespace_and_name_and_every_change_is_a_version() -> None:
    around, budget = Around(), BudgetFacts("shop", "web", LabelTest((("app", "web"),)), 1)
    around.put(NamespaceFacts("shop", {"team": "a"}))
    around.put(budget)
    around.put(VolumeFacts("v"))
    assert around.version == 3
    around.put(budget)
    assert around.version == 3, "nothing changed"
    assert around.labels_of("shop") == {"team": "a"}
    assert not around.labels_of("else")
    assert list(around.budgets_of(PodFacts("p", "shop", "p", labels=LABELS))) == [budget]
    assert not list(around.budgets_of(PodFacts("p", "shop", "p")))
    assert not list(around.budgets_of(PodFacts("p", "else", "p", labels=LABELS)))
    assert around.one(VolumeFacts, "", "v") == VolumeFacts("v")
    around.remove(budget)
    assert not list(around.every(BudgetFacts))
