"""Units of policies are kept for those whom they are for: as the extender does it, and however pods come and go."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.kinds import Selector
from j10ce.model.resource import Resources
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.book.units import Guest, HeldPledge
from j10ce.scheduler.cycle.decisions import Bind, Defer
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from j10ce.scheduler.plugins.resources.reserved import Reservation
from tests.scheduler.extender.book import extender

NAME = "ours"
CPU, MEMORY = 4000, 4000
NODES = ("a", "b", "c")


def resources(cpu: int, memory: int) -> Resources:
    return Resources._make((cpu, memory, 0, 0, 0))


def pledge(name: str, cpu: int, memory: int, **units: int) -> HeldPledge:
    return HeldPledge(f"d/{name}", "d", Selector(match_labels={"app": name}), resources(cpu, memory), units)


def pod(uid: str, app: str, cpu: int, memory: int, created: float = 0.0) -> PodFacts:
    shape = Shape((("cpu", cpu), ("memory", memory)), (cpu, memory))
    return PodFacts(uid, "d", uid, shape, {"app": app}, scheduler=NAME, created=created)


def scheduler(*pledges: HeldPledge) -> tuple[Scheduler, Reservation]:
    held = Reservation()
    made = Scheduler([profile(NAME, [NodeResourcesFit(), held])])
    for name in NODES:
        made.put_node(NodeFacts(name, {}, {"cpu": CPU, "memory": MEMORY, "pods": 99}), 0.0)
    for one in pledges:
        made.put_fact(one, 0.0)
    return made, held


def test_a_unit_is_left_to_whom_it_is_for() -> None:
    s, held = scheduler(pledge("web", 3000, 3000, a=1, b=1, c=1))
    s.put_pod(pod("other", "db", 2000, 100), 1.0)
    (deferred,) = s.step(1.0)
    assert isinstance(deferred, Defer)
    assert deferred.why == "0/3 nodes are available: 3 node(s) had cpu 3, memory 2.93Ki reserved by d/web."
    s.put_pod(pod("mine", "web", 2000, 100), 2.0)
    (bound,) = [d for d in s.step(2.0) if isinstance(d, Bind)]
    assert bound.pod.uid == "mine"
    assert held.stands(s.book.pods["mine"])


def test_a_pod_goes_where_a_unit_is_free_although_others_are_emptier() -> None:
    s, _ = scheduler(pledge("web", 3000, 3000, b=1))
    for name in ("one", "two"):
        s.put_pod(pod(name, "web", 1000, 1000), 1.0)
    assert [(d.pod.uid, d.node) for d in s.step(1.0) if isinstance(d, Bind)] == [("one", "b"), ("two", "a")]


def test_what_is_held_no_longer_is_room_for_anybody() -> None:
    web = pledge("web", 3000, 3000, a=1, b=1, c=1)
    s, _ = scheduler(web)
    s.put_pod(pod("other", "db", 2000, 100), 1.0)
    s.step(1.0)
    s.remove_fact(web, 5.0)
    assert [d.pod.uid for d in s.step(5.0) if isinstance(d, Bind)] == ["other"]


EVENTS = st.lists(
    st.tuples(st.sampled_from(("web", "db", "none")), st.sampled_from((500, 1000, 3000)), st.booleans()), max_size=25
)
UNITS = st.dictionaries(st.sampled_from(NODES), st.integers(1, 2))


@given(EVENTS, UNITS, UNITS)
def test_no_unit_is_sold_twice_and_the_extender_says_the_same(
    events: list[tuple[str, int, bool]], web: dict[str, int], db: dict[str, int]
) -> None:
    pledges = (pledge("web", 1000, 1000, **web), pledge("db", 500, 1500, **db))
    s, _ = scheduler(*pledges)
    other = extender(dict.fromkeys(NODES, resources(CPU, MEMORY)), *pledges)
    serial, there = count(), list[tuple[PodFacts, str]]()
    for app, amount, leaves in events:
        if leaves and there:
            gone, _ = there.pop(0)
            s.remove_pod(gone.uid, 0.0)
            other.occupancy.remove_guest(gone.uid)
            continue
        n = next(serial)
        one = pod(f"p{n}", app, amount, amount // 2, created=float(n))
        guest = Guest(one.uid, "d", one.name, one.labels, resources(amount, amount // 2), since=one.created)
        roomy = [name for name in NODES if has_room(there, name, amount)]  # kube-scheduler asks about those alone
        room = other.filter(guest, roomy, 0.0).fit
        other.offers.end(one.uid)
        s.put_pod(one, 0.0)
        bound = [d.node for d in s.step(0.0) if isinstance(d, Bind)]
        assert bool(bound) == bool(room)
        if not bound:
            s.remove_pod(one.uid, 0.0)
            continue
        there.append((one, bound[0]))
        other.occupancy.put_guest(guest._replace(node=bound[0]))
        kept_whole(there, pledges)


def has_room(there: list[tuple[PodFacts, str]], node: str, cpu: int) -> bool:
    used = Counter[str]()
    for pod_, at in there:
        if at == node:
            used.update(dict(pod_.shape.requests))
    return used["cpu"] + cpu <= CPU and used["memory"] + cpu // 2 <= MEMORY


def kept_whole(there: list[tuple[PodFacts, str]], pledges: tuple[HeldPledge, ...]) -> None:
    """On every node all pods, each unit that somebody stands on at its full size, and the units that nobody stands on,
    have room: unless the node was sold out to units from the beginning."""
    for node in NODES:
        units = {p.source: p.units.get(node, 0) for p in pledges}
        begun = [sum(p.shape[r] * units[p.source] for p in pledges) for r in (0, 1)]
        if begun[0] > CPU or begun[1] > MEMORY:
            continue
        taken = [0, 0]
        for pod_, at in there:
            if at != node:
                continue
            own = [dict(pod_.shape.requests)["cpu"], dict(pod_.shape.requests)["memory"]]
            mine = next((p for p in pledges if p.source == f"d/{pod_.labels['app']}" and units[p.source]), None)
            if mine is not None:
                units[mine.source] -= 1
                own = [max(own[0], mine.shape[0]), max(own[1], mine.shape[1])]
            taken = [taken[0] + own[0], taken[1] + own[1]]
        left = [sum(p.shape[r] * units[p.source] for p in pledges) for r in (0, 1)]
        assert taken[0] + left[0] <= CPU, node
        assert taken[1] + left[1] <= MEMORY, node
