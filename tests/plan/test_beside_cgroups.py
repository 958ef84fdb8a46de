"""Links and disks are there or not; shares are made. What is said of them, and of traffic, is decided like the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from j10ce.agent.ring.holds import spread
from j10ce.model.knob import Setting, TargetId, Value, disk, link, share
from j10ce.model.plan import Bound, HeldSetting, Make, Plan, Proposal, Rank, ValueChange
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Piece, Snapshot
from j10ce.plan.arbiter import arbitrate
from j10ce.plan.hold import hold_problem
from j10ce.plan.rights import Rights
from j10ce.testing import build

WEB = build.workload("web", profile="ls")
FLOOR = build.resources(network="20Mbit")._replace(disk_read=10_000_000)
ENTITLED = replace(build.entitlement(WEB), floor=FLOOR)
HERE = (link("eth0"), disk("8:0"))
RATE = Setting(link("eth0"), "link.egress.rate")
CEIL = Setting(WEB.target, "net.egress.ceil", "eth0")
READS = Setting(WEB.target, "io.max.rbps", "8:0")


def snapshot(values: Mapping[Setting, Value] | None = None) -> Snapshot:
    snap = build.snapshot(ENTITLED, workloads=[WEB], values={RATE: math.inf, CEIL: math.inf, **(values or {})})
    return replace(snap, pieces={t: Piece(t) for t in HERE})


def want(setting: Setting, value: Value, bound: Bound = Bound.WANT) -> Proposal:
    return Proposal(setting, bound, value, "network", Rank.POLICY, "a test wants it")


def decide(snap: Snapshot, *wishes: Proposal, originals: Mapping[Setting, Value] | None = None) -> Plan:
    return arbitrate(wishes, snap, (), lambda _, value: value, originals=originals)


def written(plan: Plan) -> dict[Setting, Value]:
    return {c.setting: c.new for c in plan.changes if isinstance(c, ValueChange)}


def test_a_link_and_a_disk_that_are_there_are_settable() -> None:
    model = Setting(disk("8:0"), "io.cost.model")
    wishes = (want(RATE, 1e9), want(model, "ctrl=user model=linear"))
    assert written(decide(snapshot(), *wishes)) == {RATE: 1e9, model: "ctrl=user model=linear"}


def test_one_that_is_not_there_is_left_out_with_a_note() -> None:
    plan = decide(snapshot(), want(RATE._replace(target=link("eth7")), 1e9))
    assert plan.empty
    assert plan.notes == ("link/eth7 link.egress.rate not set: no such target on this machine",)


def test_a_link_that_nobody_speaks_of_any_more_is_given_back() -> None:
    plan = decide(snapshot({RATE: 1e9}), originals={RATE: math.inf})
    assert written(plan) == {RATE: math.inf}
    assert all(c.ends for c in plan.changes if isinstance(c, ValueChange))


def test_a_share_is_made_for_its_first_value() -> None:
    together = share("default", "shop")
    plan = decide(snapshot(), want(Setting(together, "net.egress.floor", "eth0"), 5e7))
    assert [c.target for c in plan.changes if isinstance(c, Make)] == [together]


def test_a_cap_never_cuts_a_floor_of_network_or_disk() -> None:
    plan = decide(snapshot(), want(CEIL, 1e7), want(READS, 5e6))
    assert written(plan) == {CEIL: 2e7, READS: 1e7}
    assert plan.verdicts[CEIL].clamps == ("raised to 20Mbit: a cap never cuts the floor of network 20Mbit",)


def test_a_hold_that_would_is_refused_with_numbers() -> None:
    hold = HeldSetting(CEIL, 1e7, build.WALL + 60, "alice", "why not")
    problem = "net.egress.ceil 10Mbit cuts the floor of network 20Mbit: at least 20Mbit"
    assert hold_problem(hold, snapshot()) == problem


def test_a_hold_on_the_bare_knob_is_one_on_each_of_its_values() -> None:
    other = CEIL._replace(instance="eth1")
    hold = HeldSetting(Setting(WEB.target, "net.egress.ceil"), None, build.WALL + 60, "alice", "why not")
    assert [h.setting for h in spread([hold], [CEIL, READS, other])] == [CEIL, other]
    assert [*spread([hold._replace(setting=READS)], [])] == [hold._replace(setting=READS)]


def test_floors_of_all_resources_add_up_along_the_tree() -> None:
    floors = Rights.of(snapshot()).floors
    assert floors[TargetId("group/j10ce")] == Resources(network=FLOOR.network, disk_read=10_000_000)
