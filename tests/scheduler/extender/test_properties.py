"""Whatever comes and goes: pods that went through the extender never stand on what is held."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from j10ce.scheduler.book.units import Guest
from tests.scheduler.extender.book import amount, bind, extender, pod, policy

NODES = {name: amount(8, 32) for name in "abc"}
WEB = policy("web", amount(2, 8), {"a": 2, "b": 1})
DB = policy("db", amount(3, 4), {"a": 1, "c": 2})


class Cluster(RuleBasedStateMachine):
    """A scheduler as kube-scheduler is one: it knows requests and its own choices, and asks the extender."""

    def __init__(self) -> None:
        super().__init__()
        self.made = extender(NODES, WEB, DB)
        self.chosen: dict[str, tuple[Guest, str]] = {}  # assumed there; the watch has not said so yet
        self.bound: dict[str, Guest] = {}
        self.now, self.count = 0.0, 0

    def fits(self, guest: Guest, node: str) -> bool:
        """Its own filter."""
        there = [g.request for g in self.bound.values() if g.node == node]
        there += [g.request for g, at in self.chosen.values() if at == node]
        total = guest.request
        for request in there:
            total = total.plus(request)
        return total.fits(NODES[node])

    @rule(app=st.sampled_from(["", "web", "db"]), cpu=st.integers(0, 4), gib=st.integers(0, 12), data=st.data())
    def schedule(self, app: str, cpu: int, gib: int, data: Any) -> None:
        self.count += 1
        guest = pod(f"p{self.count}", amount(cpu, gib), app=app, since=float(self.count))
        nodes = [node for node in NODES if self.fits(guest, node)]
        verdict = self.made.filter(guest, nodes, self.now)
        assert sorted([*verdict.fit, *verdict.failed, *verdict.hopeless]) == sorted(nodes)
        if verdict.fit:
            self.chosen[guest.uid] = guest, data.draw(st.sampled_from(list(verdict.fit)))

    @rule(data=st.data())
    def watch_tells(self, data: Any) -> None:
        if self.chosen:
            uid = data.draw(st.sampled_from(sorted(self.chosen)))
            guest, node = self.chosen.pop(uid)
            self.bound[uid] = guest._replace(node=node)
            bind(self.made, guest, node)

    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        if self.bound:
            uid = data.draw(st.sampled_from(sorted(self.bound)))
            del self.bound[uid]
            self.made.occupancy.remove_guest(uid)

    @invariant()
    def nothing_held_is_taken(self) -> None:
        book = self.made.occupancy
        over = (book.used + book.held > book.allocatable) & (book.held > 0) & (book.allocatable > 0)
        assert not over.any()

    @invariant()
    def counts_are_as_if_counted_anew(self) -> None:
        fresh = extender(NODES, WEB, DB)
        for guest in self.bound.values():
            fresh.occupancy.put_guest(guest)
        for table in ("used", "held", "lent"):
            ours, theirs = getattr(self.made.occupancy, table), getattr(fresh.occupancy, table)
            assert ours.tolist() == theirs.tolist()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
