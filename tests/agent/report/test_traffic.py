"""How links are divided, as it is shown: `explain NAME network`, `top`, `get workloads -o wide`, metrics, the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from j10ce.agent.report.metrics import Metrics
from j10ce.agent.report.report import effective_floors, floors, node_report
from j10ce.agent.report.traffic import divided, explanation, links
from j10ce.agent.ring.ring import Report
from j10ce.agent.socket.answers import top, workloads
from j10ce.daemon.clock import Instant
from j10ce.model.kinds import NetworkSection
from j10ce.model.knob import Setting, TargetId, Value, link
from j10ce.model.machine.link import OPEN, Link
from j10ce.model.plan import Outcome, Plan, Refused, ValueChange
from j10ce.model.workload import Entitlement, Source, Traffic
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.effect.effective import effective
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.testing import build

API, SYNC, WEB = (build.workload(name) for name in ("api", "sync", "web"))
GIVEN: list[Entitlement] = [
    replace(
        build.entitlement(API, tier="sensitive"),
        floor=build.resources(network="100Mbit"),
        egress=Traffic(1e8, 5e8),
        network=NetworkSection(class_="critical"),
        sources=(Source("floor.network", "MinimalReservationPolicy/default/api", "at least 100Mbit"),),
    ),
    build.entitlement(SYNC, tier="besteffort"),
    build.entitlement(WEB),
]
RATE = Setting(link("eth0"), "link.egress.rate")


def said(target: TargetId, what: str, value: float) -> tuple[Setting, Value]:
    return Setting(target, f"net.egress.{what}", "eth0"), value


DIVIDED: dict[Setting, Value] = {
    RATE: 9.9e8,
    **dict(
        [
            said(API.target, "floor", 1e8),
            said(API.target, "ceil", 5e8),
            said(API.target, "priority", 2.0),
            said(SYNC.target, "priority", 6.0),
        ]
    ),
}
MEASURED = {
    (link("eth0"), "net.egress.rate"): 3e8,
    (API.target, "net.egress.rate"): 3.5e7,
    (API.target, "net.egress.drops"): 12.0,
    (API.target, "net.rtt"): 0.0035,
    (API.target, "net.retransmits"): 2.5,
    (SYNC.target, "net.egress.rate"): 2.6e8,
}


def report(
    values: Mapping[Setting, Value] = DIVIDED,
    links: Iterable[Link] = (build.link(),),
    outcome: Outcome | None = None,
    lacking: Iterable[str] = (),
) -> Report:
    node = build.node(links={k.name: k for k in links})
    every = [API, SYNC, WEB]
    snap = build.snapshot(*GIVEN, workloads=every, on=node, values=values, readings=MEASURED, lacking=lacking)
    resolution = Resolution({e.target: e for e in GIVEN}, Ledger(node.capacity))
    judged, became = effective(snap), outcome or Outcome()
    return Report(
        Instant(1000.0, build.WALL), "tick", snap, Plan(), became, resolution, judged, (), {}, (), armed=True, cpu_s=0.0
    )


def test_explain_says_what_it_has_what_it_sends_and_between_whom_it_stands() -> None:
    assert explanation(report(), API.target)["text"].splitlines() == [
        "workload/default/api: tier sensitive, class critical; egress at least 100Mbit and at most 500Mbit, "
        "by MinimalReservationPolicy/default/api",
        "eth0 egress: queued for at 990Mbit (1Gbit by its own speed; 300Mbit in use)",
        "  at least 100Mbit and at most 500Mbit, level 2 of 0 to 7; sends 35Mbit now, 12 packets/s dropped",
        "  500Mbit for certain if everyone sends all it can",
        "  gives way to it: default/sync (260Mbit), default/web",
        "eth0 ingress: not divided (1Gbit by its own speed; use not known yet)",
        "  TCP: 3.50 ms there and back, 2.5 segments/s sent again",
    ]


def test_explain_of_who_gives_way_names_who_goes_first() -> None:
    lines = explanation(report(), SYNC.target)["text"].splitlines()
    assert "  served before it: default/api (35Mbit), default/web" in lines
    assert "  0bit for certain if everyone sends all it can" in lines


def test_explain_says_why_nothing_is_divided() -> None:
    assert (
        "no link of this machine is managed (links: eth0)"
        in explanation(report(links=[build.link(managed=False)]), API.target)["text"]
    )
    without = explanation(report({}, lacking=["link.egress.rate"]), API.target)["text"]
    assert "link.egress.rate is not enforceable here: needs another kernel" in without
    refusal = Outcome(((ValueChange(RATE, 0.0, 9.9e8, "network", "why"), Refused("eth0 has an fq_codel of others")),))
    assert (
        "link/eth0 link.egress.rate: eth0 has an fq_codel of others"
        in explanation(report({}, outcome=refusal), API.target)["text"]
    )


def test_doctor_has_every_link_with_what_is_in_force_there() -> None:
    listed = links(report(links=[build.link(), build.link("veth1", None, managed=False, kind="veth")]))
    assert [[*k.values()] for k in listed] == [
        ["eth0", "device", "1Gbit by its own speed", True, "egress at 990Mbit"],
        ["veth1", "veth", "no known speed", False, "no"],
    ]


def test_the_shares_that_are_certain_fit_the_link() -> None:
    egress, ingress = divided(report())
    assert (egress.measured, ingress.members) == (3e8, ())
    assert sum(m.certain for m in egress.members) <= egress.rate


def test_top_has_rates_of_workloads_and_links() -> None:
    shown = top(report())
    rates = {w["name"]: w["rates"] for w in shown["workloads"]}
    assert rates == {"api": {"egress": 3.5e7}, "sync": {"egress": 2.6e8}, "web": {}}
    assert shown["node"]["links"] == [{"name": "eth0", "capacity": 1e9, "egress": 3e8, "ingress": 0.0}]


def test_how_traffic_gets_on_is_in_top_in_explain_and_by_tier_in_metrics() -> None:
    shown = {w["name"]: w["traffic"] for w in top(report())["workloads"]}
    assert shown == {"api": {"drops": 12.0, "retransmits": 2.5, "rtt": 0.0035}, "sync": {}, "web": {}}
    answer = explanation(report(), API.target)
    assert "  TCP: 3.50 ms there and back, 2.5 segments/s sent again" in answer["text"].splitlines()
    assert answer["traffic"] == shown["api"]
    text = Metrics().render(report()).decode()
    assert 'j10ce_tcp_rtt_seconds{tier="sensitive"} 0.0035' in text
    assert 'j10ce_tcp_retransmits_per_second{tier="sensitive"} 2.5' in text
    assert 'j10ce_traffic_dropped_packets_per_second{tier="sensitive"} 12.0' in text


def test_a_link_of_unknown_speed_is_said_to_have_ceilings_alone() -> None:
    shown = report({RATE: OPEN, **dict([said(API.target, "ceil", 5e8)])}, [build.link(speed=None)])
    lines = explanation(shown, API.target)["text"].splitlines()
    assert any(line.startswith("eth0 egress: queued for ceilings alone (") for line in lines), lines
    assert not any("for certain" in line for line in lines)
    assert [k["divided"] for k in links(shown)] == ["egress for ceilings alone"]


def test_a_listing_has_rates_and_the_floor_with_what_annuls_it() -> None:
    api = next(w for w in workloads(report({})) if w.metadata.name == "api")
    assert {name: str(q) for name, q in api.status.usage.items()}["egress"] == "35M"
    (floor,) = api.status.effective
    assert (floor.resource, str(floor.promised), str(floor.effective)) == ("network", "100M", "0")
    assert floor.reason == "nothing divides eth0: its link.egress.rate is not set"
    assert floor.source == "MinimalReservationPolicy/default/api"


def test_the_node_reports_capacity_and_floors_of_the_network() -> None:
    node = node_report(report(), NodeDocument(node="n1"))
    assert str(node.capacity["network"]) == "1G"
    assert [(f.resource, f.reason) for f in effective_floors(report(), API.target)] == [("network", "")]
    assert floors(report())["network"] == (1e8, 1e8)


def test_metrics_have_a_gauge_for_each_managed_link() -> None:
    text = Metrics().render(report()).decode()
    assert 'j10ce_link_bits_per_second{direction="egress",link="eth0"} 3e+08' in text
    assert 'j10ce_link_capacity_bits_per_second{link="eth0"} 1e+09' in text
    assert 'j10ce_floor_effective{resource="network"} 1e+08' in text
