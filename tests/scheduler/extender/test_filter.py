"""Who may go where, and what those hear who may not."""

from __future__ import annotations

from tests.scheduler.extender.book import amount, bind, extender, pod, policy

NODES = {"a": amount(4, 16), "b": amount(4, 16)}
WEB = policy("web", amount(2, 4), {"a": 1})


def test_a_pod_without_a_reservation_is_kept_out_of_held_capacity() -> None:
    made = extender(NODES, WEB)
    fits = made.filter(pod("batch", amount(3, 1)), ["a", "b"], 0.0)
    assert fits.fit == ["b"]
    assert fits.hopeless == {"a": "cpu 2, memory 4Gi reserved by MinimalReservationPolicy/shop/web"}


def test_a_pod_that_fits_beside_what_is_held_may_go_there() -> None:
    assert extender(NODES, WEB).filter(pod("batch", amount(2, 1)), ["a", "b"], 0.0).fit == ["a", "b"]


def test_a_pod_that_asks_for_nothing_takes_nothing() -> None:
    full = policy("web", amount(4, 16), {"a": 1})
    assert extender(NODES, full).filter(pod("tiny", amount()), ["a"], 0.0).fit == ["a"]


def test_where_what_is_held_leaves_no_room_evictions_would_not_help() -> None:
    full = policy("web", amount(3, 4), {"a": 1})
    verdict = extender(NODES, full).filter(pod("batch", amount(2, 1)), ["a"], 0.0)
    assert not verdict.soon
    assert (verdict.fit, verdict.failed, list(verdict.hopeless)) == ([], {}, ["a"])


def test_where_a_neighbour_could_leave_evictions_may_help() -> None:
    made = extender(NODES, WEB)
    bind(made, pod("neighbour", amount(2, 1)), "a")
    verdict = made.filter(pod("batch", amount(1, 1)), ["a"], 0.0)
    assert (verdict.fit, list(verdict.failed), verdict.hopeless) == ([], ["a"], {})


def test_a_holder_lands_on_its_witness() -> None:
    verdict = extender(NODES, WEB).filter(pod("web-0", amount(2, 4), app="web"), ["a", "b"], 0.0)
    assert verdict.fit == ["a"]
    assert verdict.failed == {"b": "a unit of MinimalReservationPolicy/shop/web is held for it on a"}


def test_a_holder_beyond_the_units_goes_where_there_is_room() -> None:
    made = extender(NODES, WEB)
    bind(made, pod("web-0", amount(2, 4), app="web"), "a")
    assert made.filter(pod("web-1", amount(2, 4), app="web"), ["a", "b"], 0.0).fit == ["a", "b"]


def test_a_holder_whose_witness_the_scheduler_ruled_out_goes_elsewhere() -> None:
    assert extender(NODES, WEB).filter(pod("web-0", amount(2, 4), app="web"), ["b"], 0.0).fit == ["b"]


def test_a_holder_that_asks_for_more_than_its_unit_leaves_the_units_of_others_alone() -> None:
    other = policy("db", amount(2, 4), {"a": 1})
    made = extender(NODES, WEB, other)
    assert made.filter(pod("web-0", amount(3, 4), app="web"), ["a", "b"], 0.0).fit == ["b"]


def test_what_a_holder_does_not_ask_for_of_its_unit_stays_reserved_for_it() -> None:
    made = extender(NODES, WEB)
    bind(made, pod("web-0", amount(1, 1), app="web"), "a")
    verdict = made.filter(pod("batch", amount(3, 1)), ["a"], 0.0)
    assert verdict.failed == {"a": "cpu 1, memory 3Gi reserved by pods that ask for less than their unit"}


def test_lent_units_are_there_for_pods_that_give_way_alone() -> None:
    lent = policy("web", amount(2, 4), {"a": 1}, lends=True)
    assert extender(NODES, lent).filter(pod("best", amount(3, 1), gives_way=True), ["a"], 0.0).fit == ["a"]
    assert extender(NODES, lent).filter(pod("batch", amount(3, 1)), ["a"], 0.0).fit == []


def test_an_offer_is_charged_on_every_node_until_the_binding_is_seen() -> None:
    made = extender(NODES, WEB, policy("db", amount(2, 4), {"b": 1}))
    first, second = pod("one", amount(2, 1)), pod("two", amount(2, 1))
    assert made.filter(first, ["a", "b"], 0.0).fit == ["a", "b"]
    verdict = made.filter(second, ["a", "b"], 1.0)
    assert (verdict.fit, verdict.soon) == ([], True)
    bind(made, first, "a")
    assert made.filter(second, ["a", "b"], 2.0).fit == ["b"]


def test_an_offer_that_nobody_took_ends_after_ten_seconds() -> None:
    made = extender(NODES, WEB)
    made.filter(pod("one", amount(2, 1)), ["a"], 0.0)
    assert made.filter(pod("two", amount(2, 1)), ["a"], 9.9).fit == []
    assert made.filter(pod("two", amount(2, 1)), ["a"], 10.0).fit == ["a"]


def test_a_pod_that_asks_again_is_charged_once() -> None:
    made = extender(NODES, WEB)
    for now in (0.0, 1.0, 2.0):
        assert made.filter(pod("one", amount(2, 1)), ["a"], now).fit == ["a"]
    assert len(made.offers) == 1


def test_holders_that_come_together_are_sent_to_different_units() -> None:
    nodes = {f"n{i}": amount(2, 4) for i in range(10)}
    made = extender(nodes, policy("web", amount(2, 4), dict.fromkeys(nodes, 1)))
    offered = [made.filter(pod(f"web-{i}", amount(2, 4), app="web"), list(nodes), 0.0).fit for i in range(10)]
    assert sorted(node for fit in offered for node in fit) == sorted(nodes)


def test_a_node_that_is_not_known_holds_nothing() -> None:
    assert extender(NODES, WEB).filter(pod("batch", amount(3, 1)), ["new"], 0.0).fit == ["new"]


def test_a_policy_that_is_over_holds_nothing() -> None:
    made = extender(NODES, WEB)
    made.occupancy.remove_pledge(WEB.source)
    assert made.filter(pod("batch", amount(4, 1)), ["a"], 0.0).fit == ["a"]


def test_a_unit_that_moves_leaves_its_node() -> None:
    made = extender(NODES, WEB)
    made.occupancy.put_pledge(WEB._replace(units={"b": 1}))
    assert made.filter(pod("batch", amount(4, 1)), ["a", "b"], 0.0).fit == ["a"]
