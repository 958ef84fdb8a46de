"""A link that was given a tree keeps it where traffic passes, and has back what it had where none does."""

from __future__ import annotations

from j10ce.kernel.net import foreign, probation
from j10ce.model.plan import Refused
from tests.enforce.net.shaping import MBIT, Shaped, rate, take_over
from tests.enforce.net.test_egress import THEIRS

SOON_S = 0.5
LONG_S = 100.0


def tried(shaped: Shaped, within_s: float, before: str = "") -> int:
    index = shaped.trees.index("eth0")
    assert index is not None
    with shaped.netns.inside():
        started = probation.start(index, "egress", before, within_s)
    return started.wait()


def test_where_the_gateway_answers_the_tree_stays_and_is_proven(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    index = shaped.trees.index("eth0")
    tree = shaped.trees.of(index or 0)
    assert tree is not None
    assert tree.on_probation
    assert tried(shaped, LONG_S) == probation.PASSED
    assert not tree.on_probation
    assert "10ce:" in shaped.picture()


def test_where_nothing_passes_the_link_has_back_what_it_had(shaped: Shaped) -> None:
    before = shaped.picture()
    shaped.done(rate(1000 * MBIT))
    shaped.netns.ip("link", "set", "eth0", "down", at=shaped.netns.peer)
    assert tried(shaped, SOON_S) == probation.WENT_BACK
    assert shaped.picture() == before


def test_what_was_taken_over_comes_back_with_the_agent_gone(shaped: Shaped) -> None:
    for words in THEIRS:
        shaped.netns.run("tc", *words)
    before = shaped.picture()
    kept = foreign.capture(shaped.trees.netlink, shaped.trees.index("eth0") or 0)
    shaped.done(take_over(), rate(1000 * MBIT))
    assert [t.before for t in shaped.trials] == [kept]
    shaped.netns.ip("link", "set", "eth0", "down", at=shaped.netns.peer)
    assert tried(shaped, SOON_S, kept) == probation.WENT_BACK
    assert shaped.picture() == before


def test_a_link_without_a_gateway_is_judged_by_its_traffic(shaped: Shaped) -> None:
    shaped.netns.ip("route", "replace", "default", "dev", "eth0")
    before = shaped.picture()
    shaped.done(rate(1000 * MBIT))
    shaped.netns.ip("link", "set", "eth0", "down", at=shaped.netns.peer)
    assert tried(shaped, SOON_S) == probation.WENT_BACK
    assert shaped.picture() == before


def test_a_neighbour_that_an_operator_wrote_down_stays_written_down(shaped: Shaped) -> None:
    theirs = ("192.0.2.2", "lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent")
    shaped.netns.ip("neigh", "replace", *theirs)
    shaped.done(rate(1000 * MBIT))
    tried(shaped, SOON_S)
    assert "02:00:00:00:00:01 PERMANENT" in shaped.netns.run("ip", "neigh", "show", "192.0.2.2")


def test_what_others_set_up_meanwhile_is_not_undone(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    shaped.netns.run("tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "htb")
    shaped.netns.ip("link", "set", "eth0", "down", at=shaped.netns.peer)
    assert tried(shaped, SOON_S) == probation.WENT_BACK
    assert "htb 7:" in shaped.picture()


def test_a_link_on_which_nothing_passed_is_not_tried_again_with_the_same_rate(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    shaped.trials[0].ended = probation.WENT_BACK
    shaped.netns.run("tc", "qdisc", "del", "dev", "eth0", "root")
    ((_, refused),) = shaped.apply(rate(1000 * MBIT)).refused()
    assert isinstance(refused, Refused)
    assert "no traffic passed within 10 s" in refused.reason
    shaped.done(rate(900 * MBIT))
    assert len(shaped.trials) == 2


def test_an_agent_that_comes_after_one_that_was_killed_tries_the_link_again(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    shaped.start()
    assert len(shaped.trials) == 2
    tried(shaped, LONG_S)
    shaped.start()
    assert len(shaped.trials) == 2
