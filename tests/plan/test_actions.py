"""Which deeds are done, and which are left out with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.model.kinds import Tier
from j10ce.model.knob import Deed, Setting, TargetId, group
from j10ce.model.parts.strategy import EVICTIONS_PER_MINUTE
from j10ce.model.plan import Action, HeldSetting
from j10ce.model.snapshot import Snapshot
from j10ce.plan.actions import AGAIN_S, ENDINGS, admit
from j10ce.testing import build

NAMES = ("a", "b", "c", "d")
BATCH = {n: build.workload(n) for n in NAMES}


def snapshot(*, tier: Tier = Tier.BESTEFFORT, done: dict[tuple[Deed, TargetId], float] | None = None) -> Snapshot:
    entitled = [build.entitlement(w, tier=tier.value) for w in BATCH.values()]
    return replace(build.snapshot(*entitled, workloads=BATCH.values()), done=done or {})


def act(deed: Deed, name: str, amount: float = 1.0, *, enforced: bool = True, owner: str = "test") -> Action:
    return Action(deed, BATCH[name].target, owner, "a test wants it", amount, enforced=enforced)


def test_of_two_for_one_workload_the_larger_is_done() -> None:
    wishes = [act(Deed.RECLAIM, "a", 10), act(Deed.RECLAIM, "a", 20)]
    assert [a.amount for a in admit(wishes, snapshot(), ()).actions] == [20]


MI = 1 << 20


@pytest.mark.parametrize(
    ("used_mi", "asked_mi", "done_mi"),
    [
        pytest.param(100, 20, [20], id="well above its floor"),
        pytest.param(100, 60, [36], id="only what is beyond its floor"),
        pytest.param(64, 1, [], id="all of it was promised"),
    ],
)
def test_a_reclaim_leaves_what_was_promised(used_mi: int, asked_mi: int, done_mi: list[int]) -> None:
    """The kernel would not: the memory.min of the very cgroup that is asked does not count."""
    w = build.workload("a")
    e = build.entitlement(w, floor_memory="64Mi")
    tree = build.tree([w], {w.target: e}, current={w.target: float(used_mi * MI)})
    admitted = admit([act(Deed.RECLAIM, "a", asked_mi * MI)], build.snapshot(e, workloads=[w], groups=tree), ())
    assert [a.amount / MI for a in admitted.actions] == done_mi
    assert bool(admitted.notes) is not bool(done_mi)


def test_the_system_is_never_squeezed() -> None:
    wishes = [act(deed, "a") for deed in Deed]
    assert admit(wishes, snapshot(tier=Tier.SYSTEM), ()).actions == ()


def test_whoever_no_policy_chose_is_left_alone() -> None:
    snap = snapshot()
    snap = replace(snap, entitlements={t: replace(e, chosen=False) for t, e in snap.entitlements.items()})
    admitted = admit([act(Deed.KILL, "a")], snap, ())
    assert admitted.actions == ()
    assert "no policy chose" in admitted.notes[0]


def test_a_hold_keeps_a_workload_from_being_evicted_and_from_nothing_else() -> None:
    hold = HeldSetting(Setting(BATCH["a"].target, "evict"), None, build.WALL + 60, "admin", "important")
    wishes = [act(Deed.EVICT, "a"), act(Deed.RECLAIM, "a")]
    assert [a.deed for a in admit(wishes, snapshot(), [hold]).actions] == [Deed.RECLAIM]


def test_what_the_agent_before_this_one_did_is_not_done_again() -> None:
    snap = snapshot(done={(Deed.EVICT, BATCH["a"].target): build.WALL - 5})
    admitted = admit([act(Deed.EVICT, "a")], snap, ())
    assert admitted.actions == ()
    assert [a.target for a in admitted.pending] == [BATCH["a"].target]
    later = replace(snap, wall=build.WALL + AGAIN_S[Deed.EVICT])
    assert len(admit([act(Deed.EVICT, "a")], later, ()).actions) == 1


def test_a_kill_is_not_repeated_at_once_and_an_eviction_that_is_held_is_pending_no_more() -> None:
    target = BATCH["a"].target
    snap = snapshot(done={(deed, target): build.WALL - 5 for deed in ENDINGS})
    killed = admit([act(Deed.KILL, "a")], snap, ())
    assert killed.actions == killed.pending == ()
    assert "done 5 s ago" in killed.notes[0]
    hold = HeldSetting(Setting(target, "evict"), None, build.WALL + 60, "admin", "important")
    assert admit([act(Deed.EVICT, "a")], snap, [hold]).pending == ()


def test_a_clock_that_was_set_back_blocks_nobody() -> None:
    snap = snapshot(done={(Deed.EVICT, BATCH[n].target): build.WALL + 3600 for n in NAMES})
    assert len(admit([act(Deed.EVICT, "a")], snap, ()).actions) == 1


def test_a_minute_has_so_many_endings_and_proposals_cost_none() -> None:
    wishes = [act(Deed.EVICT, "a", enforced=False), *(act(Deed.EVICT, n) for n in NAMES[1:])]
    admitted = admit(wishes, snapshot(), ())
    assert [a.target for a in admitted.actions] == [BATCH[n].target for n in ("a", "b", "c")]
    assert "no more than 2" in admitted.notes[0]


def test_memory_is_reclaimed_from_our_own_groups_and_from_no_others() -> None:
    ours, strange = (Action(Deed.RECLAIM, group(p), "test", "why", 1.0) for p in ("j10ce", "system.slice"))
    assert admit([ours, strange], snapshot(), ()).actions == (ours,)


ACTIONS = st.lists(
    st.builds(act, st.sampled_from(Deed), st.sampled_from(NAMES), st.floats(1, 9), enforced=st.booleans()), max_size=20
)
DONE = st.dictionaries(
    st.tuples(st.sampled_from(Deed), st.sampled_from([w.target for w in BATCH.values()])),
    st.floats(build.WALL - 300, build.WALL),
)


@given(wishes=ACTIONS, done=DONE)
def test_whatever_is_wished_a_minute_never_sees_more_endings_than_allowed(
    wishes: list[Action], done: dict[tuple[Deed, TargetId], float]
) -> None:
    admitted = admit(wishes, snapshot(done=done), ()).actions
    lately = sum(1 for (deed, _), at in done.items() if deed in ENDINGS and build.WALL - at < 60)
    now = sum(1 for a in admitted if a.deed in ENDINGS and a.enforced)
    assert now <= max(0, EVICTIONS_PER_MINUTE - lately)
    assert len({a.what for a in admitted}) == len(admitted)
    assert set(admitted) <= set(wishes)
