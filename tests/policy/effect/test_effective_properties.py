"""On any tree: protection and CPU time are divided, never multiplied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.model import knob
from j10ce.model.knob import ROOT, Setting, TargetId, Value
from j10ce.model.snapshot import Foreign, Group, Groups, Snapshot
from j10ce.policy.effect.cpu_share import cpu_times
from j10ce.policy.effect.effective import effective
from j10ce.policy.effect.memory_share import distribute, full_usage, present_usage
from j10ce.testing.build import node, snapshot, workload

PAGE = 4096
pages = st.integers(0, 50).map(lambda n: float(n * PAGE))
cpusets = st.frozensets(st.integers(0, 3), max_size=4)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A random tree whose usage adds up: a group uses what is inside it and perhaps some of its own."""
    count = draw(st.integers(1, 7))
    targets = [ROOT, *(knob.group(f"g{n}") for n in range(count))]
    parents = [draw(st.integers(0, n)) for n in range(count)]
    own = [draw(pages) for _ in targets]
    foreign = [[_foreign(draw)] if draw(st.booleans()) else [] for _ in targets]
    usage = [o + sum(f.memory_current for f in theirs) for o, theirs in zip(own, foreign, strict=True)]
    for child in range(count, 0, -1):
        usage[parents[child - 1]] += usage[child]
    groups = {
        t: Group(
            t, targets[parents[n - 1]] if n else None, t[6:], True, foreign=tuple(foreign[n]), memory_current=usage[n]
        )
        for n, t in enumerate(targets)
    }
    values = {s: v for t in targets[1:] for s, v in _settings(draw, t).items()}
    recursive = draw(st.booleans())
    return snapshot(on=node(recursive_protection=recursive), groups=Groups(groups), values=values)


def _foreign(draw: st.DrawFn) -> Foreign:
    return Foreign("f", draw(st.integers(2, 4096)), draw(pages), draw(pages), draw(pages))


def _settings(draw: st.DrawFn, t: TargetId) -> dict[Setting, Value]:
    return {
        Setting(t, "memory.min"): draw(pages | st.just(float("inf"))),
        Setting(t, "memory.low"): draw(pages),
        Setting(t, "cpu.weight"): float(draw(st.integers(2, 262144))),
        Setting(t, "cpu.idle"): float(draw(st.booleans())),
        Setting(t, "cpu.max"): draw(st.sampled_from([float("inf"), 1000.0, 50_000.0, 400_000.0])),
        Setting(t, "cpuset.cpus"): draw(cpusets),
    }


@given(snapshots(), st.sampled_from(["memory.min", "memory.low"]), st.booleans())
def test_children_never_have_more_protection_than_their_parent(snap: Snapshot, kind: str, full: bool) -> None:
    usage = full_usage(snap) if full else present_usage(snap)
    protection = distribute(snap, kind, usage, full=full)
    for parent, children in snap.groups.children.items():
        if parent != ROOT:
            assert sum(protection.effective[c] for c in children) <= protection.effective[parent]


@given(snapshots())
def test_full_use_is_the_worst_case(snap: Snapshot) -> None:
    """For a group that uses all that it claims: more use elsewhere only takes away."""
    now = distribute(snap, "memory.low", present_usage(snap), full=False)
    full = distribute(snap, "memory.low", full_usage(snap), full=True)
    for parent, children in snap.groups.children.items():
        for c in children if parent != ROOT else ():
            used_up = now.setting[c] <= present_usage(snap)[c] and not snap.node.recursive_protection
            if used_up and full.effective[parent] <= now.effective[parent]:
                assert full.effective[c] <= now.effective[c]


@given(snapshots())
def test_siblings_never_have_more_time_than_their_parent(snap: Snapshot) -> None:
    times = cpu_times(snap)
    assert times[ROOT].total == 4000
    for parent, children in snap.groups.children.items():
        assert sum(times[c].total for c in children) <= times[parent].total * (1 + 1e-9)
        for c in children:
            assert times[c].total <= min(times[c].quota, 1000 * len(times[c].cpus)) * (1 + 1e-9)


@given(st.lists(st.integers(2, 262144), min_size=1, max_size=6), st.integers(0, 10_000))
def test_without_caps_all_the_time_is_given_out(weights: list[int], foreign: int) -> None:
    ws = [workload(f"w{n}") for n in range(len(weights))]
    values: dict[Setting, Value] = {Setting(w.target, "cpu.weight"): float(n) for w, n in zip(ws, weights, strict=True)}
    at = Groups({ROOT: Group(ROOT, None, "", False, foreign=(Foreign("f", foreign),))} | {
        w.target: Group(w.target, ROOT, w.name, True) for w in ws
    })  # fmt: skip
    effects = effective(snapshot(workloads=ws, groups=at, values=values))
    rest = 4000 * foreign / (sum(weights) + foreign)
    assert abs(sum(e.cpu for e in effects.values()) + rest - 4000) < 1e-6
