"""Accounts kept by events are what a full recomputation says, after a restart, too."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.scheduler.accounts.accounts import IDLE_S, MOST_OWNERS, Accounts, Departure, Mode
from j10ce.scheduler.accounts.history import restore, taken
from j10ce.scheduler.accounts.measure import Measure
from j10ce.scheduler.accounts.online import Edge, Online, State
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from tests.scheduler.accounts.oracle import Stamps, expected

START = 1_790_000_000.0
APPROACHES = ("independent", "average", "aggregate", "concurrent")


def pod(uid: str, created: float = START, **more: object) -> PodFacts:
    owner = OwnerFacts("Deployment", "shop", "web", slots=2)
    return PodFacts(uid, "shop", uid, created=created, owner=owner)._replace(**more)  # type: ignore[arg-type]


@dataclass
class World:
    """Pods of one owner, and what really happened to them."""

    mode: Mode
    approach: str
    slo: str
    now: float = START
    pods: dict[str, PodFacts] = field(default_factory=dict)
    stamps: dict[str, Stamps] = field(default_factory=dict)
    slots: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.accounts = Accounts(self.mode)

    def create(self) -> None:
        uid = f"p{len(self.stamps)}"
        slot = next(n for n in range(len(self.slots) + 1) if n not in self.slots)
        self.slots[slot] = uid
        annotations = {"qosMeasuring": self.approach, "slo": self.slo}
        self.stamps[uid] = Stamps(slot, self.now)
        self._put(pod(uid, self.now, annotations=annotations))

    def bind(self, uid: str) -> None:
        if self.stamps[uid].bind_start is None:
            classic = self.mode == "classic"
            self.stamps[uid] = self.stamps[uid]._replace(bind_start=self.now, run_start=self.now if classic else None)
            self._put(self.pods[uid]._replace(node="n1"))

    def start(self, uid: str) -> None:
        if self.stamps[uid].bind_start is None:
            return
        if self.stamps[uid].run_start is None:
            self.stamps[uid] = self.stamps[uid]._replace(run_start=self.now)
        self._put(self.pods[uid]._replace(started=self.now, phase="Running"))

    def mark(self, uid: str) -> None:
        self._leave(uid)
        self._put(self.pods[uid]._replace(deleted=self.now))

    def end(self, uid: str, succeeded: bool) -> None:
        self._leave(uid)
        self.stamps[uid] = self.stamps[uid]._replace(end=self.now, succeeded=succeeded)
        if succeeded:
            self._put(self.pods[uid]._replace(phase="Succeeded"))
        self.accounts.gone(uid, self.now)
        del self.pods[uid]

    def restart(self) -> None:
        """By way of what was written down, as JSON."""
        written = json.loads(json.dumps(taken(self.accounts, self.now)))
        self.accounts = Accounts(self.mode)
        restore(written, self.accounts)
        for each in self.pods.values():
            self.accounts.seen(each, self.now)
        self.accounts.settle(self.pods.keys(), self.now)

    def _leave(self, uid: str) -> None:
        self.stamps[uid] = self.stamps[uid]._replace(current=False)
        self.slots = {slot: holder for slot, holder in self.slots.items() if holder != uid}

    def _put(self, each: PodFacts) -> None:
        self.pods[each.uid] = each
        self.accounts.seen(each, self.now)


@settings(max_examples=100)
@given(st.data(), st.sampled_from(("lazy", "classic")), st.sampled_from(APPROACHES), st.sampled_from(("0", "0.5", "1")))
def test_sums_kept_by_events_are_those_of_a_full_recomputation(
    data: st.DataObject, mode: Mode, approach: str, slo: str
) -> None:
    world = World(mode, approach, slo)
    for _ in range(data.draw(st.integers(1, 25), label="events")):
        world.now += data.draw(st.sampled_from((0.0, 0.25, 7.0, 400.0)), label="passed")
        draw(world, data)
    world.now += 3.0
    for uid, each in world.pods.items():
        measure = world.accounts.measure(uid, world.now)
        assert measure is not None
        compare(measure, world, world.stamps[uid], each.phase, float(slo))


def draw(world: World, data: st.DataObject) -> None:
    deeds = (
        ["create", "restart"] if not world.pods else ["create", "bind", "start", "mark", "end", "succeed", "restart"]
    )
    deed = data.draw(st.sampled_from(deeds), label="deed")
    if deed in ("create", "restart"):
        getattr(world, deed)()
        return
    uid = data.draw(st.sampled_from(sorted(world.pods)), label="pod")
    if deed in ("end", "succeed"):
        world.end(uid, deed == "succeed")
    elif world.pods[uid].deleted is None:
        getattr(world, deed)(uid)


def compare(measure: Measure, world: World, about: Stamps, phase: str, slo: float) -> None:
    # An end in the midst of binding stops that, too.
    stamps = [it if it.end is None or it.run_start is not None else _waited(it) for it in world.stamps.values()]
    want = expected(world.approach, stamps, about, phase, slo, 2, world.now)
    ended_in_binding = sum(_bound_until_the_end(it, about, world.approach) for it in world.stamps.values())
    sums, pods = measure.sums, measure.pods
    got = [*sums[:2], sums.waiting + sums.binding, sums.incarnations, pods.running, pods.pending]
    wanted = [want.effective, want.discarded, want.waiting + want.binding + ended_in_binding, *want[4:7]]
    assert got == pytest.approx(wanted, abs=1e-5)
    if not ended_in_binding and abs(want.qos - slo) > 1e-9:
        assert measure.metric == pytest.approx(want.metric, abs=1e-4)


def _waited(it: Stamps) -> Stamps:
    return it if it.bind_start is None else it._replace(end=it.bind_start, bind_start=None)


def _bound_until_the_end(it: Stamps, about: Stamps, approach: str) -> float:
    if approach == "independent" and it.slot != about.slot:
        return 0.0
    return it.end - it.bind_start if it.end and it.bind_start and it.run_start is None else 0.0


def test_an_account_without_pods_is_forgotten_after_an_hour_or_with_its_owner() -> None:
    accounts = Accounts()
    for n in range(5):
        owner = OwnerFacts("Deployment", "shop", f"web{n}")
        accounts.seen(pod(f"p{n}", owner=owner), START)
        accounts.gone(f"p{n}", START + 1)
    accounts.owner_gone(OwnerFacts("Deployment", "shop", "web0"))
    assert sorted(accounts.by_key) == [f"shop/Deployment/web{n}" for n in range(1, 5)]
    accounts.seen(pod("late"), START + IDLE_S + 2)
    assert sorted(accounts.by_key) == ["shop/Deployment/web"]


def test_an_account_of_several_owners_is_followed_by_the_first_and_goes_with_the_last() -> None:
    accounts = Accounts()
    owners = [OwnerFacts("Job", "shop", f"job{n}", slots=n + 1) for n in range(MOST_OWNERS + 9)]
    for n, owner in enumerate(owners):
        accounts.seen(pod(f"p{n}", owner=owner, annotations={"controller": "all"}), START)
        accounts.gone(f"p{n}", START + 1)
    account = accounts.by_key["shop/all"]
    accounts.owner_seen(owners[3]._replace(slots=50), START + 2)
    assert (len(account.owners), account.identity.slots) == (MOST_OWNERS, 1)
    for owner in owners[1:]:
        accounts.owner_gone(owner)
    assert accounts.by_key
    accounts.owner_gone(owners[0])
    assert not accounts.by_key


def test_an_owner_that_nobody_follows_changes_nothing_for_those_without_a_name() -> None:
    accounts = Accounts("classic")
    accounts.seen(PodFacts("a", "shop", "a", created=START), START)
    accounts.gone("a", START + 5)
    accounts.owner_gone(OwnerFacts("Deployment", "bank", "other"))
    assert accounts.by_key[""].sums(START + 5).waiting == 5.0


def test_equal_annotations_are_one_account_within_a_namespace_and_are_shown_as_they_are_written() -> None:
    accounts = Accounts()
    for uid, namespace in (("a", "shop"), ("b", "shop"), ("c", "bank")):
        accounts.seen(PodFacts(uid, namespace, uid, annotations={"controller": "web"}, created=START), START)
    again = Accounts()
    restore(json.loads(json.dumps(taken(accounts, START))), again)
    for each in (accounts, again):
        assert {key: set(account.live) for key, account in each.by_key.items()} == {
            "shop/web": {"a", "b"},
            "bank/web": {"c"},
        }
        assert [account.identity.shown for account in each.sorted()] == ["web", "web"]


def test_pods_that_come_and_go_all_the_time_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("j10ce.scheduler.accounts.accounts.MOST_IDLE", 10)
    accounts = Accounts()
    for n in range(100):
        accounts.seen(PodFacts(f"p{n}", "shop", f"p{n}", created=START), START)
        accounts.gone(f"p{n}", START)
    assert len(accounts.by_key) <= 11


def test_pods_that_start_together_cost_one_step_each(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list[Edge]()
    after = Online._after

    def counted(state: State, edge: Edge) -> State:
        steps.append(edge)
        return after(state, edge)

    monkeypatch.setattr(Online, "_after", staticmethod(counted))
    online = Online(300, START)
    for n in range(300):
        online.moved(START + n / 10, online=1)
    assert len(steps) == 300
    assert online.sums(START + 40.0) == pytest.approx((300 * 10.1, sum(range(300)) / 10))


def test_more_pods_than_slots_get_slots_of_their_own_and_a_freed_slot_is_taken_first() -> None:
    accounts = Accounts()
    for uid in "abc":
        accounts.seen(pod(uid), START)
    accounts.gone("b", START + 1)
    accounts.seen(pod("d"), START + 1)
    numbers = {uid: it.slot.number for uid in "acd" if (it := accounts.of(uid))}
    assert numbers == {"a": 0, "c": 2, "d": 1}


def test_a_scaled_owner_needs_other_pods_from_then_on() -> None:
    accounts = Accounts()
    concurrent = {"qosMeasuring": "concurrent"}
    accounts.seen(pod("a", annotations=concurrent, node="n1", started=START), START)
    accounts.owner_seen(OwnerFacts("Deployment", "shop", "web", slots=1), START + 10)
    measure = accounts.measure("a", START + 15)
    assert measure is not None
    assert (measure.sums.effective, measure.sums.discarded) == (5.0, 10.0)


def test_kube_system_is_not_followed() -> None:
    accounts = Accounts()
    accounts.seen(pod("a")._replace(namespace="kube-system"), START)
    assert not accounts.by_key
    assert accounts.measure("a", START) is None


def test_a_clock_that_is_set_back_takes_no_time_back() -> None:
    accounts = Accounts()
    accounts.seen(pod("a"), START + 100)
    accounts.gone("a", START - 500)
    assert accounts.by_key["shop/Deployment/web"].sums(START + 100).waiting == 100.0


def test_a_pod_leaves_its_slot_once_and_is_measured_then() -> None:
    departures: list[Departure] = []
    accounts = Accounts()
    accounts.listen(departures.append)
    accounts.seen(pod("a", node="n1", started=START), START)
    accounts.seen(pod("a", node="n1", started=START, deleted=START + 50), START + 50)
    accounts.gone("a", START + 80)
    assert [departure.at - START for departure in departures] == [50.0]
    assert math.isclose(departures[0].measure.sums.effective, 50.0)
    assert accounts.by_key["shop/Deployment/web"].sums(START + 99).effective == 80.0


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        pytest.param([], "Expected", id="no object"),
        pytest.param({"version": 2, "at": 0.0, "since": None, "accounts": []}, "version", id="of another version"),
        pytest.param({"version": 1, "at": 0.0, "since": None, "accounts": [["k"]]}, "length", id="cut off"),
    ],
)
def test_history_that_cannot_be_read_is_refused(plain: object, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        restore(plain, Accounts())


def written() -> dict[str, Any]:
    accounts = Accounts()
    accounts.seen(pod("a"), START)
    accounts.seen(pod("a", node="n1", started=START + 4), START + 5)
    return json.loads(json.dumps(taken(accounts, START + 100)))


def test_a_history_that_a_clock_ahead_of_ours_wrote_goes_on_from_now() -> None:
    accounts = Accounts()
    restore(written(), accounts, START - 900)
    accounts.seen(pod("a", node="n1", started=START + 4), START - 890)
    assert accounts.latest == START - 890
    assert accounts.by_key["shop/Deployment/web"].sums(START - 890) == (106.0, 0.0, 4.0, 0.0, 1)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        pytest.param((0, 1), 7.0, id="slo"),
        pytest.param((0, 4), -1, id="slots"),
        pytest.param((0, 10, 0, 3), 1, id="slot"),
        pytest.param((0, 10, 0, 5), START + 101, id="created later"),
        pytest.param((0, 10, 0, 7), 1e308, id="started at the end of time"),
        pytest.param((0, 9, 0, 2), -1e308, id="ran for less than nothing"),
        pytest.param((0, 8, 0), 1e300, id="ran for longer than there is time"),
    ],
)
def test_a_history_that_nobody_wrote_like_this_is_refused_as_a_whole(where: tuple[int, ...], value: float) -> None:
    plain = written()
    part = plain["accounts"]
    for step in where[:-1]:
        part = part[step]
    part[where[-1]] = value
    accounts = Accounts()
    with pytest.raises(Invalid):
        restore(plain, accounts)
    with pytest.raises(Invalid):
        restore(written() | {"at": 1e300}, accounts)
    assert not accounts.by_key


def test_a_history_with_a_pod_on_two_accounts_is_refused() -> None:
    plain = written()
    plain["accounts"].append([*plain["accounts"][0]])
    plain["accounts"][1][0] = "shop/other"
    with pytest.raises(Invalid, match="twice"):
        restore(plain, Accounts())
