"""Who runs under which profile, with which floor, and who said so."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from j10ce.model.kinds import (
    IGNORE_LABEL,
    PROFILE_LABEL,
    CacheSection,
    CpuSection,
    IoSection,
    MemorySection,
    Tier,
)
from j10ce.model.resource import NOTHING
from j10ce.model.workload import Entitlement, Note, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.resolve import Resolution, resolve
from j10ce.policy.profiles import TRUSTED_LABEL, builtin
from j10ce.testing.build import WALL, handle, memory, node, profile, reservation, resources, selector, workload

TRUSTED = {TRUSTED_LABEL: "true"}
POLICY = "MinimalReservationPolicy/default"


def said(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(map(str, notes))


def resolved(*workloads: Workload, policies: object = (), profiles: object = (), on: object = None) -> Resolution:
    document = NodeDocument(node="n1", profiles=(*builtin(), *profiles), policies=tuple(policies))  # type: ignore[misc]
    return resolve(workloads, document, on or node(cpus=4, memory="8Gi"), wall=WALL + 1000)  # type: ignore[arg-type]


def one(w: Workload, **given: object) -> Entitlement:
    return resolved(w, **given).entitlements[w.target]


def sources(e: Entitlement) -> dict[str, str]:
    return {s.field: s.object for s in e.sources}


class TestProfiles:
    def test_the_label_chooses(self) -> None:
        e = one(workload("web", profile="LS"))
        assert (e.chosen, e.profile, e.tier) == (True, "ls", Tier.SENSITIVE)
        assert sources(e) == {"profile": "QoSProfile/ls"}

    def test_the_label_goes_before_every_selector(self) -> None:
        eager = profile("eager", "standard", priority=1000, selector=selector())
        assert one(workload("web", profile="ls"), profiles=[eager]).profile == "ls"

    def test_the_selector_of_the_highest_priority_chooses_then_the_first_name(self) -> None:
        web = workload("web", labels={"app": "web"})
        low, b, a = (
            profile(n, priority=p, selector=selector({"app": "web"})) for n, p in (("0", 1), ("b", 5), ("a", 5))
        )
        assert one(web, profiles=[low, b, a]).profile == "a"
        assert one(workload("db", labels={"app": "db"}), profiles=[low, b, a]).chosen is False

    def test_the_label_of_the_namespace_chooses_for_whom_nobody_else_does(self) -> None:
        shop = {"j10ce.io/qos-profile": "be"}
        e = one(workload("web", namespace_labels=shop))
        assert (e.chosen, e.profile, e.tier) == (True, "be", Tier.BESTEFFORT)
        assert one(workload("web", profile="ls", namespace_labels=shop)).profile == "ls"
        chosen = profile("picked", selector=selector({"app": "web"}))
        assert one(workload("web", labels={"app": "web"}, namespace_labels=shop), profiles=[chosen]).profile == "picked"

    def test_a_namespace_cannot_give_what_it_may_not_choose(self) -> None:
        e = one(workload("web", namespace_labels={"j10ce.io/qos-profile": "lsr"}))
        assert e.chosen is False
        assert said(e.notes) == ("namespace 'default' may not choose profile 'lsr'",)

    def test_an_unknown_profile_is_reported_and_selectors_decide(self) -> None:
        fallback = profile("any", selector=selector())
        e = one(workload("web", profile="gold"), profiles=[fallback])
        assert e.profile == "any"
        assert said(e.notes) == ("no QoSProfile is named 'gold'",)

    def test_a_privileged_profile_needs_a_listed_namespace(self) -> None:
        refused = one(workload("web", profile="lsr", cpu="1"))
        assert (refused.chosen, refused.floor) == (False, NOTHING)
        assert said(refused.notes) == ("namespace 'default' may not choose profile 'lsr'",)
        assert one(workload("web", profile="lsr", namespace_labels=TRUSTED)).profile == "lsr"

    def test_a_profile_selects_only_where_it_may_be_chosen(self) -> None:
        greedy = profile("greedy", "reserved", selector=selector(), namespaces=selector({"team": "db"}))
        assert one(workload("web"), profiles=[greedy]).chosen is False
        assert one(workload("web", namespace_labels={"team": "db"}), profiles=[greedy]).profile == "greedy"

    @pytest.mark.parametrize(
        ("requests", "tier"),
        [
            ({"cpu": "1", "memory": "1Gi", "cpu_limit": "1", "memory_limit": "1Gi"}, Tier.SENSITIVE),
            ({"cpu": "1"}, Tier.STANDARD),
            ({}, Tier.BESTEFFORT),
        ],
        ids=["Guaranteed", "Burstable", "BestEffort"],
    )
    def test_the_native_class_only_classifies(self, requests: dict[str, str], tier: Tier) -> None:
        e = one(workload("pod", handle=handle("kubepods/pod1"), **requests))  # type: ignore[arg-type]
        assert (e.chosen, e.tier, e.profile, e.sources) == (False, tier, "", ())

    def test_nobody_is_put_among_best_effort_without_having_asked(self) -> None:
        assert one(workload("web")).tier is Tier.STANDARD

    def test_sections_that_nothing_acts_on_are_reported(self) -> None:
        custom = profile("custom", selector=selector())
        custom = replace(
            custom, spec=replace(custom.spec, io=IoSection(weight=5), cache=CacheSection(llc_end_percent=9))
        )
        e = one(workload("web"), profiles=[custom])
        assert said(e.notes) == ("no controller acts on section io of profile custom",)

    @pytest.mark.parametrize("where", ["labels", "namespace_labels"])
    def test_ignored_means_no_knob_and_no_floor(self, where: str) -> None:
        labels = {where: {IGNORE_LABEL: "true"}}
        if where == "labels":
            labels[where][PROFILE_LABEL] = "ls"
        e = one(workload("web", **labels), policies=[reservation(cpu="1")])  # type: ignore[arg-type]
        assert (e.chosen, e.floor) == (False, NOTHING)

    def test_a_critical_workload_is_never_below_system(self) -> None:
        e = one(workload("dns", profile="be", critical=True))
        assert (e.tier, e.profile, e.cpu.idle) == (Tier.SYSTEM, "system", False)
        assert "be was not taken" in e.notes[0].text
        assert one(workload("dns", critical=True)).tier is Tier.SYSTEM


class TestFloors:
    def test_a_reservation_chooses_and_gives_its_floor(self) -> None:
        e = one(
            workload("db", labels={"app": "db"}),
            policies=[reservation("r", labels={"app": "db"}, cpu="1", memory="2Gi")],
        )
        assert (e.chosen, e.floor) == (True, resources("1", "2Gi"))
        assert sources(e) == {"floor.cpu": f"{POLICY}/r", "floor.memory": f"{POLICY}/r"}

    def test_a_reservation_is_for_its_namespace_and_selector_only(self) -> None:
        policies = [reservation("a", namespace="other", cpu="1"), reservation("b", labels={"app": "db"}, cpu="1")]
        assert one(workload("web", labels={"app": "web"}), policies=policies).floor == NOTHING

    def test_several_merge_by_maximum_and_are_charged_once(self) -> None:
        policies = [reservation("a", cpu="2", memory="1Gi"), reservation("b", cpu="1", memory="3Gi")]
        result = resolved(web := workload("web"), policies=policies)
        e = result.entitlements[web.target]
        assert e.floor == result.ledger.promised == resources("2", "3Gi")
        assert sources(e) == {"floor.cpu": f"{POLICY}/a", "floor.memory": f"{POLICY}/b"}
        line = result.ledger.get(web.target)
        assert line is not None
        assert line.charged == f"{POLICY}/a"  # half of the CPUs is more than three eighths of the memory

    def test_equal_shares_are_charged_by_name(self) -> None:
        result = resolved(web := workload("web"), policies=[reservation("b", cpu="1"), reservation("a", cpu="1")])
        line = result.ledger.get(web.target)
        assert line is not None
        assert line.charged == f"{POLICY}/a"

    def test_percent_is_of_the_node(self) -> None:
        assert one(workload("web"), policies=[reservation(cpu="25%", memory="50%")]).floor == resources("1", "4Gi")

    def test_a_workload_brings_its_own_reservation(self) -> None:
        e = one(workload("web", min_cpu="500m", min_memory="512Mi"))
        assert (e.chosen, e.floor) == (True, resources("500m", "512Mi"))
        assert sources(e)["floor.cpu"] == "Workload/default/web"

    @pytest.mark.parametrize("name", ["lse", "lsr", "guaranteed-pro"])
    def test_reserving_profiles_reserve_the_request(self, name: str) -> None:
        e = one(workload("db", profile=name, cpu="1", memory="1Gi", namespace_labels=TRUSTED))
        assert e.floor == resources("1", "1Gi")
        assert sources(e)["floor.cpu"] == f"QoSProfile/{name}"

    def test_min_percent_is_a_reservation_too(self) -> None:
        half = profile("half", "sensitive", selector=selector(), memory=MemorySection(min_percent=50))
        assert one(workload("a", memory="4Gi"), profiles=[half]).floor == resources(0, "2Gi")
        e = one(workload("b", memory="20Gi"), profiles=[half])
        assert (e.floor, e.memory.min_percent) == (NOTHING, MemorySection().min_percent)
        assert str(e.notes[0]).startswith("Unprotected: QoSProfile/half asks for memory 10Gi")

    @pytest.mark.parametrize(
        ("ttl", "floor"), [("999s", NOTHING), ("1000s", NOTHING), ("1001s", resources("1"))], ids=str
    )
    def test_a_reservation_ends_with_its_ttl(self, ttl: str, floor: object) -> None:
        result = resolved(web := workload("web"), policies=[reservation(cpu="1", ttl=ttl)])
        assert result.entitlements[web.target].floor == floor
        assert result.until == (WALL + 1001 if floor != NOTHING else float("inf"))

    def test_who_finds_no_room_hears_the_numbers(self) -> None:
        first, second = workload("a", since=WALL), workload("b", since=WALL + 1)
        result = resolved(second, first, policies=[reservation("r", cpu="2500m")])
        assert result.entitlements[first.target].floor == resources("2500m")
        e = result.entitlements[second.target]
        assert (e.chosen, e.floor) == (True, NOTHING)
        assert said(e.notes) == (
            f"Unprotected: {POLICY}/r asks for cpu 2500m: cpu 2500m wanted, 1300m free of 3800m; "
            "held by workload/default/a cpu 2500m",
        )

    def test_a_smaller_promise_is_kept_where_the_larger_does_not_fit(self) -> None:
        policies = [reservation("small", cpu="1"), reservation("huge", cpu="100")]
        e = one(workload("web"), policies=policies)
        assert e.floor == resources("1")
        assert len(e.notes) == 1

    def test_what_the_node_cannot_measure_is_reported_and_the_rest_is_given(self) -> None:
        result = resolved(web := workload("web"), policies=[reservation("r", cpu="1", network="100Mbit")])
        assert result.entitlements[web.target].floor == resources("1")
        assert said(result.notes) == (f"{POLICY}/r: network 100Mbit cannot be promised here: n1 has no measure of it",)
        assert said(result.entitlements[web.target].notes) == (f"{POLICY}/r: network 100Mbit cannot be promised here",)

    def test_a_cpu_floor_lifts_a_workload_out_of_best_effort(self) -> None:
        e = one(workload("job", profile="be"), policies=[reservation(cpu="500m")])
        assert (e.tier, e.cpu) == (Tier.STANDARD, CpuSection(weight=2))
        assert said(e.notes) == ("tier besteffort cannot hold a CPU floor of 500m, so it runs in tier standard",)
        kept = one(workload("job", profile="be"), policies=[reservation(memory="1Gi")])
        assert (kept.tier, kept.floor.memory) == (Tier.BESTEFFORT, memory("1Gi"))

    def test_a_memory_floor_lifts_whom_no_profile_sent_to_best_effort(self) -> None:
        pod = workload("db", handle=handle("kubepods/besteffort/pod1"))
        assert one(pod).tier is Tier.BESTEFFORT
        assert one(pod, policies=[reservation(memory="1Gi")]).tier is Tier.STANDARD


class TestUnits:
    def test_units_are_held_while_nobody_uses_them(self) -> None:
        result = resolved(policies=[reservation("r", cpu="1", units=2)])
        assert result.ledger.promised == resources("2")
        assert resolved(workload("web"), policies=[reservation("r", cpu="1", units=2)]).ledger.promised == resources(
            "2"
        )

    def test_beyond_the_units_there_is_a_floor_while_there_is_room(self) -> None:
        ws = [workload(f"w{n}", since=WALL + n) for n in range(5)]
        result = resolved(*ws, policies=[reservation("r", cpu="1", units=2)])
        assert [result.entitlements[w.target].floor.cpu for w in ws] == [1000, 1000, 1000, 0, 0]
        assert result.ledger.promised == resources("3")

    def test_as_many_units_as_fit_are_held_and_the_rest_is_reported(self) -> None:
        result = resolved(policies=[reservation("r", cpu="1", units=5)])
        assert result.ledger.promised == resources("3")
        assert said(result.notes) == (
            f"{POLICY}/r: not all of its 5 units are held: cpu 1 wanted, 800m free of 3800m; held by {POLICY}/r cpu 3",
        )

    def test_a_workload_stands_on_one_unit_only(self) -> None:
        policies = [reservation("a", cpu="1", units=1), reservation("b", cpu="1500m", units=1)]
        result = resolved(web := workload("web"), policies=policies)
        assert result.ledger.promised == resources("2500m")  # b's unit is used, a's is still held for another
        line = result.ledger.get(web.target)
        assert line is not None
        assert (line.charged, line.units) == (f"{POLICY}/b", 1)

    def test_a_unit_serves_where_there_is_no_other_room(self) -> None:
        other = reservation("other", namespace="x", cpu="2800m")
        policies = [other, reservation("unit", cpu="1", units=1), reservation("more", cpu="1200m", created=WALL + 1)]
        ws = workload("big", namespace="x"), workload("web", since=WALL + 2)
        e = resolved(*ws, policies=policies).entitlements[ws[1].target]
        assert e.floor == resources("1")
        assert str(e.notes[0]).startswith(f"Unprotected: {POLICY}/more")

    def test_who_moves_to_a_larger_policy_leaves_its_unit_behind(self) -> None:
        policies = [reservation("unit", cpu="1", units=1), reservation("more", cpu="1500m", created=WALL + 1)]
        result = resolved(web := workload("web"), policies=policies)
        assert result.entitlements[web.target].floor == resources("1500m")
        assert result.ledger.promised == resources("2500m")

    def test_a_unit_of_a_smaller_policy_serves_what_there_is_no_room_for(self) -> None:
        full = workload("full", namespace="x", min_memory="6656Mi", since=WALL - 1)  # all but one gibibyte
        unit = reservation("unit", memory="1Gi", units=1, created=WALL - 2)
        result = resolved(full, web := workload("web", since=WALL), policies=[unit, reservation("cpu", cpu="2")])
        assert result.ledger.free.memory == 0
        assert result.entitlements[web.target].floor == resources("2", "1Gi")

    def test_fewer_units_carry_fewer_workloads(self) -> None:
        ws = [workload("a", since=WALL), workload("b", since=WALL + 1)]
        two, one_unit = (NodeDocument(node="n1", policies=(reservation("r", cpu="1", units=n),)) for n in (2, 1))
        before = resolve(ws, two, node(), wall=WALL).ledger
        after = resolve(ws, one_unit, node(), wall=WALL, before=before).ledger
        assert sum(line.units for line in before) == 2
        assert sum(line.units for line in after) == 1
        assert after.promised == resources("2")


class TestSeniority:
    def test_who_came_later_never_displaces(self) -> None:
        policies = [reservation("r", cpu="2"), reservation("a", labels={"app": "x"}, cpu="2", created=WALL + 50)]
        old = workload("z", since=WALL + 1)
        young = workload("a", since=WALL + 2, labels={"app": "x"})
        result = resolved(young, old, policies=policies)
        assert result.entitlements[old.target].floor == resources("2")
        assert result.entitlements[young.target].floor == NOTHING

    def test_what_was_promised_is_kept_against_an_older_newcomer(self) -> None:
        web, document = workload("web", since=WALL), NodeDocument(node="n1", policies=(reservation("r", cpu="3"),))
        before = resolve([web], document, node(), wall=WALL).ledger
        older = reservation("older", namespace="x", cpu="3", units=1, created=WALL - 1000)
        wider = NodeDocument(node="n1", policies=(*document.policies, older))
        kept = resolve([web], wider, node(), wall=WALL, before=before)
        assert kept.entitlements[web.target].floor == resources("3")
        assert resolve([web], wider, node(), wall=WALL).entitlements[web.target].floor == NOTHING

    def test_a_profile_that_comes_later_claims_later(self) -> None:
        pro = profile("pro", "reserved", selector=selector({"app": "db"}), created=WALL + 50)
        db, web = workload("db", cpu="3", labels={"app": "db"}), workload("web", min_cpu="3", since=WALL)
        result = resolved(db, web, profiles=[pro])
        assert result.entitlements[web.target].floor == resources("3")
        assert result.entitlements[db.target].floor == NOTHING

    def test_a_shrunken_machine_cuts_by_tier_and_says_so(self) -> None:
        db = workload("db", profile="lsr", cpu="1", namespace_labels=TRUSTED)
        web = workload("web", min_cpu="2")
        document = NodeDocument(node="n1", profiles=builtin())
        before = resolve([db, web], document, node(cpus=4), wall=WALL).ledger
        result = resolve([db, web], document, node(cpus=2), wall=WALL, before=before)
        assert result.entitlements[db.target].floor == resources("1")
        assert result.entitlements[web.target].floor == resources("900m")
        assert "cpu 2 cut to 900m" in result.entitlements[web.target].notes[0].text

    def test_a_policy_that_promises_less_frees_the_rest(self) -> None:
        web, wide, narrow = workload("web"), reservation("r", cpu="3"), reservation("r", cpu="1")
        before = resolve([web], NodeDocument(node="n1", policies=(wide,)), node(), wall=WALL).ledger
        after = resolve([web], NodeDocument(node="n1", policies=(narrow,)), node(), wall=WALL, before=before)
        assert after.entitlements[web.target].floor == after.ledger.promised == resources("1")

    def test_what_is_no_longer_wanted_is_free(self) -> None:
        web, document = workload("web"), NodeDocument(node="n1", policies=(reservation("r", cpu="3", units=1),))
        before = resolve([web], document, node(), wall=WALL).ledger
        nothing = NodeDocument(node="n1")
        assert resolve([web], nothing, node(), wall=WALL, before=before).ledger.promised == NOTHING
        assert resolve([], document, node(), wall=WALL, before=before).ledger.promised == resources("3")
