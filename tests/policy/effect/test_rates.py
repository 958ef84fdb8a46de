"""Whether a floor of the network holds: on every managed link, in each direction that was promised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

from j10ce.model.knob import Setting, Value, link
from j10ce.model.machine.link import Link
from j10ce.model.workload import Traffic
from j10ce.policy.effect.effective import Effective, effective
from j10ce.testing import build

API = build.workload("api")
FLOOR = build.resources(network="100Mbit")
BOTH = Traffic(1e8)


def rate(way: str, value: float, name: str = "eth0") -> tuple[Setting, Value]:
    return Setting(link(name), f"link.{way}.rate"), value


def floor(way: str, value: float, name: str = "eth0") -> tuple[Setting, Value]:
    return Setting(API.target, f"net.{way}.floor", name), value


DIVIDED = [rate("egress", 9.9e8), rate("ingress", 9.9e8)]
HELD = [floor("egress", 1e8), floor("ingress", 1e8)]


def judged(
    values: Iterable[tuple[Setting, Value]],
    *,
    ingress: Traffic = BOTH,
    links: Iterable[Link] = (build.link(),),
    lacking: Iterable[str] = (),
    floors: Mapping[str, int] | None = None,
) -> Effective:
    entitled = replace(build.entitlement(API), floor=FLOOR._replace(**(floors or {})), egress=BOTH, ingress=ingress)
    node = build.node(links={k.name: k for k in links})
    snap = build.snapshot(entitled, workloads=[API], on=node, values=dict(values), lacking=lacking)
    return effective(snap)[API.target]


def test_a_floor_holds_where_it_is_set_on_a_link_that_is_divided() -> None:
    whole = judged([*DIVIDED, *HELD])
    assert whole.holds
    assert whole.rates["network"] == (1e8, "")


@pytest.mark.parametrize(
    ("values", "has", "reason"),
    [
        pytest.param(HELD, 0, "nothing divides eth0: its link.egress.rate is not set", id="a link nobody divides"),
        pytest.param(
            [rate("egress", math.inf), *HELD],
            0,
            "nothing divides eth0: its link.egress.rate is not set",
            id="given back",
        ),
        pytest.param(
            [*DIVIDED, floor("egress", 5e7), HELD[1]], 5e7, "net.egress.floor[eth0] is 50Mbit", id="half of it"
        ),
        pytest.param([*DIVIDED, HELD[0]], 0, "net.ingress.floor[eth0] is 0bit", id="one direction alone"),
        pytest.param(
            [rate("egress", 5e7), DIVIDED[1], *HELD], 5e7, "net.egress.floor[eth0] is 50Mbit", id="a link too small"
        ),
    ],
)
def test_who_annuls_a_floor_is_named(values: list[tuple[Setting, Value]], has: float, reason: str) -> None:
    assert judged(values).rates["network"] == (has, reason)


NO_DOOR = "it has a network of its own, and eth0 does not know by which link that comes in"


@pytest.mark.parametrize(
    ("door", "has", "reason"),
    [
        pytest.param("", 0.0, NO_DOOR, id="no"),
        pytest.param("veth1", 1e8, "", id="yes"),
    ],
)
def test_a_floor_of_a_pod_counts_where_its_door_is_known(door: str, has: float, reason: str) -> None:
    pod = replace(API, own_network=True)
    entitled = replace(build.entitlement(pod), floor=FLOOR, egress=Traffic(1e8), ingress=Traffic(1e8))
    values = dict([*DIVIDED, *HELD, (Setting(pod.target, "net.door", "eth0"), door)])
    snap = build.snapshot(entitled, workloads=[pod], on=build.node(links={"eth0": build.link()}), values=values)
    assert effective(snap)[pod.target].rates["network"] == (has, reason)


def test_the_worst_link_counts() -> None:
    links = (build.link(), build.link("eth1"))
    assert judged([*DIVIDED, *HELD], links=links).rates["network"].reason.startswith("nothing divides eth1")
    other = [rate("egress", 1e9, "eth1"), rate("ingress", 1e9, "eth1")]
    every = [*DIVIDED, *HELD, *other, floor("egress", 1e8, "eth1"), floor("ingress", 1e8, "eth1")]
    assert judged(every, links=links).holds


def test_a_direction_of_which_nothing_was_promised_is_not_asked_for() -> None:
    assert judged([DIVIDED[0], HELD[0]], ingress=Traffic()).holds


def test_a_machine_that_cannot_divide_says_what_it_needs() -> None:
    reason = judged([], lacking=["net.egress.floor"]).rates["network"].reason
    assert reason == "net.egress.floor is not enforceable here: needs another kernel"


def test_a_machine_that_divides_only_what_is_sent_holds_a_floor_of_that() -> None:
    assert judged([DIVIDED[0], HELD[0]], lacking=["net.ingress.floor"]).holds
