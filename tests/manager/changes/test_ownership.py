"""Who owns what, and what an apply does to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, currently_in_test_context, given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.errors import FieldConflict, Invalid
from j10ce.manager.changes.fields import Path, leaves, owns, paths, spelled, tree, whole
from j10ce.manager.changes.ownership import MOST_MANAGERS, FieldWriter, applied, decided, refuse, updated
from j10ce.model.kinds import Hold, MinimalReservationPolicy, Object
from j10ce.model.schema import convert, plain
from j10ce.model.stored import Key
from j10ce.testing.build import WALL

KEY = Key("MinimalReservationPolicy", "default", "db")
SHAPE = decided(MinimalReservationPolicy, "spec")


def apply(old: Object | None, config: dict[str, Any], by: str, *, force: bool = False, part: Any = "spec") -> Object:
    """Hypothesis gives up a case whose last owner takes away what is required."""
    writer = FieldWriter(by, part, WALL)
    try:
        new = applied(old, config, KEY, MinimalReservationPolicy, writer)
    except Invalid as e:
        if currently_in_test_context():
            assume("required" not in str(e))
        raise
    if old and not force:
        refuse(old, new, writer)
    return new


def update(old: Object, change: dict[str, Any], by: str) -> Object:
    wish = plain(replace(old, metadata=replace(old.metadata, managed_fields=())))
    for part, values in change.items():
        wish[part] = wish[part] | values
    return updated(old, convert(wish, MinimalReservationPolicy), FieldWriter(by, "spec", WALL))  # type: ignore[type-var]


def owned(obj: Object | None, by: str) -> set[Path]:
    entries = obj.metadata.managed_fields if obj else ()
    return {path for entry in entries if entry.manager == by for path in paths(entry.fields_v1)}


def said(config: dict[str, Any]) -> dict[Path, object]:
    return dict(leaves(config, SHAPE))


def at(obj: Object, path: Path) -> object:
    return dict(leaves(obj, SHAPE)).get(path)


# -- random managers, random decisions

OWNER = {"apiVersion": "v1", "kind": "App", "name": "shop"}
SPEC = {
    "units": st.integers(0, 2),
    "ttl": st.sampled_from(["1h", "60m", "2h"]),
    "selector": st.sampled_from([{}, {"matchLabels": {"app": "db"}}, {"matchLabels": {"app": "web", "tier": "x"}}]),
    "lending": st.sampled_from([{}, {"mode": "None"}, {"mode": "Reclaimable"}, {"within": "10s"}]),
    "rollout": st.sampled_from([{}, {"paused": True}, {"canaryPercent": 10}, {"canaryPercent": 20, "paused": False}]),
    "minimum": st.fixed_dictionaries(
        {}, optional={"cpu": st.sampled_from(["1", "1000m", "2"]), "memory": st.just("1Gi")}
    ),
}
META = {
    "labels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3),
    "annotations": st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3),
    "ownerReferences": st.lists(st.sampled_from("uv"), unique=True).map(
        lambda uids: [OWNER | {"uid": u} for u in uids]
    ),
}
configs = st.fixed_dictionaries(
    {},
    optional={"spec": st.fixed_dictionaries({}, optional=SPEC), "metadata": st.fixed_dictionaries({}, optional=META)},
)
managers = st.sampled_from(["ann", "bob", "cid"])
steps = st.lists(st.tuples(st.sampled_from(["apply", "force", "update"]), managers, configs), max_size=6)


def lived(history: list[tuple[str, str, dict[str, Any]]]) -> Object:
    """An object with a past."""
    obj = apply(None, {"spec": {"minimum": {"cpu": "1"}}}, "founder")
    for how, by, config in history:
        try:
            obj = update(obj, config, by) if how == "update" else apply(obj, config, by, force=how == "force")
        except (FieldConflict, Invalid):
            continue
    return obj


@given(history=steps, config=configs, by=managers)
def test_applying_twice_is_applying_once(history: Any, config: Any, by: str) -> None:
    once = apply(lived(history), config, by, force=True)
    assert apply(once, config, by) == once


@given(history=steps, config=configs, by=managers)
def test_what_is_applied_holds_and_is_owned(history: Any, config: Any, by: str) -> None:
    obj, alone = (apply(past, config, by, force=True) for past in (lived(history), lived([])))
    entry = next((e for e in obj.metadata.managed_fields if (e.manager, e.operation) == (by, "Apply")), None)
    assert set(paths(entry.fields_v1) if entry else ()) == set(said(config))
    values = [path for path, value in said(config).items() if value != {}]
    assert [at(obj, path) for path in values] == [at(alone, path) for path in values]


@given(history=steps, one=configs, other=configs)
def test_managers_of_different_leaves_never_conflict(history: Any, one: Any, other: Any) -> None:
    obj = apply(lived([step for step in history if step[1] == "cid"]), one, "ann", force=True)
    theirs = {path for who in ("ann", "cid", "founder") for path in owned(obj, who)}
    if not theirs & set(said(other)):
        after = apply(obj, other, "bob")
        assert theirs == {path for who in ("ann", "cid", "founder") for path in owned(after, who)}


@given(history=steps, config=configs, by=managers)
def test_a_conflict_names_the_owners_and_changes_nothing(history: Any, config: Any, by: str) -> None:
    obj = lived(history)
    try:
        after = apply(obj, config, by)
    except FieldConflict as e:
        named = {(manager, field) for manager, field in e.owners}
        others = {(who, spelled(path)) for who in ("ann", "bob", "cid", "founder") for path in owned(obj, who)}
        assert named <= others
        forced = apply(obj, config, by, force=True)
        changed = {spelled(path) for path in said(config) if at(forced, path) != at(obj, path)}
        assert {field for _, field in named} <= changed
    else:
        for entry in obj.metadata.managed_fields:
            if (entry.manager, entry.operation) != (by, "Apply"):
                assert entry in after.metadata.managed_fields, "nothing was taken from anyone"


@given(history=steps, config=configs, by=managers)
def test_force_takes_what_it_changes(history: Any, config: Any, by: str) -> None:
    obj = lived(history)
    after = apply(obj, config, by, force=True)
    changed = {path for path in said(config) if at(after, path) != at(obj, path)}
    for entry in after.metadata.managed_fields:
        if (entry.manager, entry.operation) != (by, "Apply"):
            assert not any(owns(entry.fields_v1, path) for path in changed)


@given(history=steps, by=managers)
def test_what_nobody_wants_any_more_disappears(history: Any, by: str) -> None:
    obj = lived(history)
    before = {path for entry in obj.metadata.managed_fields if (entry.manager, entry.operation) == (by, "Apply")
              for path in paths(entry.fields_v1)}  # fmt: skip
    others = {path for entry in obj.metadata.managed_fields if (entry.manager, entry.operation) != (by, "Apply")
              for path in paths(entry.fields_v1)}  # fmt: skip
    after = apply(obj, {}, by)
    for path in before:
        wanted = any(other[: len(path)] == path for other in others)
        item = next((path[:n] for n, step in enumerate(path, 1) if step.startswith("k:")), None)
        kept = item is not None and any(other[: len(item)] == item for other in others)
        assert (at(after, path) is None and path not in dict(leaves(after, SHAPE))) or wanted or kept
    for path in others:
        assert at(after, path) == at(obj, path), "what others own stays"


@given(history=steps, config=configs, by=managers)
def test_a_plain_write_takes_what_it_changes_and_no_more(history: Any, config: Any, by: str) -> None:
    obj = lived(history)
    try:
        after = update(obj, config, by)
    except Invalid:
        return
    before, now = dict(leaves(obj, SHAPE)), dict(leaves(after, SHAPE))
    changed = {path for path in now if path not in before or before[path] != now[path]}
    changed |= {path for path in before if not any(other[: len(path)] == path for other in now)}
    for entry in obj.metadata.managed_fields:
        if (entry.manager, entry.operation) != (by, "Update"):
            left = next(
                (
                    e
                    for e in after.metadata.managed_fields
                    if (e.manager, e.operation) == (entry.manager, entry.operation)
                ),
                None,
            )
            assert set(paths(entry.fields_v1)) - changed == set(paths(left.fields_v1) if left else ())
    assert changed & now.keys() <= owned(after, by)


@given(history=steps, by=managers)
def test_writing_what_is_there_changes_nothing(history: Any, by: str) -> None:
    obj = lived(history)
    assert update(obj, {}, by) == obj


@given(config=configs)
def test_the_fields_of_a_new_object_are_those_of_its_leaves(config: Any) -> None:
    made = apply(None, {"spec": {"minimum": {"cpu": "1"}}} | config, "ann")
    assert whole(made, SHAPE) == tree(path for path, _ in leaves(made, SHAPE))


@given(
    st.frozensets(
        st.lists(st.sampled_from(["f:a", "f:b", 'k:{"type":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
    )
)
def test_sets_of_fields_survive_their_nesting(owned: frozenset[Path]) -> None:
    assert frozenset(paths(tree(owned))) == owned
    assert all(owns(tree(owned), path) for path in owned)


# -- cases worth a name


def test_equal_values_are_shared_and_outlive_one_owner() -> None:
    founded = apply(None, {"spec": {"minimum": {"cpu": "1"}, "units": 2}}, "ann")
    shared = apply(founded, {"spec": {"units": 2}}, "bob")
    left = apply(shared, {"spec": {"minimum": {"cpu": "1"}}}, "ann")
    assert left.spec.units == 2
    assert apply(left, {}, "bob").spec.units == 0


def test_another_spelling_of_the_same_amount_is_no_conflict() -> None:
    founded = apply(None, {"spec": {"minimum": {"cpu": "1"}}}, "ann")
    assert apply(founded, {"spec": {"minimum": {"cpu": "1000m"}}}, "bob").spec == founded.spec


def test_saying_a_default_is_deciding_it() -> None:
    founded = apply(None, {"spec": {"minimum": {"cpu": "1"}, "units": 0}}, "ann")
    with pytest.raises(FieldConflict, match=r'conflict with "ann": \.spec\.units'):
        apply(founded, {"spec": {"units": 3}}, "bob")


def test_half_a_selector_is_not_merged() -> None:
    founded = apply(None, {"spec": {"minimum": {"cpu": "1"}, "selector": {"matchLabels": {"a": "1"}}}}, "ann")
    with pytest.raises(FieldConflict, match=r"\.spec\.selector$"):
        apply(founded, {"spec": {"selector": {"matchLabels": {"b": "1"}}}}, "bob")


def test_conditions_are_owned_one_by_one() -> None:
    founded = apply(None, {"spec": {"minimum": {"cpu": "1"}}}, "ann")
    one = apply(founded, {"status": {"conditions": [{"type": "A", "status": "True"}]}}, "ann", part="status")
    two = apply(one, {"status": {"conditions": [{"type": "B", "status": "True"}]}}, "bob", part="status")
    assert [c.type for c in two.status.conditions] == ["A", "B"]
    assert {e.subresource for e in two.metadata.managed_fields[1:]} == {"status"}
    with pytest.raises(FieldConflict, match=r'\.status\.conditions\[type="A"\]\.status'):
        apply(two, {"status": {"conditions": [{"type": "A", "status": "False"}]}}, "bob", part="status")
    assert [c.type for c in apply(two, {"status": {}}, "ann", part="status").status.conditions] == ["B"]


def test_a_set_takes_members_of_several() -> None:
    spec = {"target": "workload/a/b", "knobs": ["cpu.max"], "expires": "2030-01-01T00:00:00Z", "why": "w"}
    key = Key("Hold", "default", "h")
    one = applied(None, {"spec": spec}, key, Hold, FieldWriter("ann", "spec", WALL))
    two = applied(one, {"spec": {"knobs": ["memory.high"]}}, key, Hold, FieldWriter("bob", "spec", WALL))
    assert two.spec.knobs == ("cpu.max", "memory.high")
    assert 'v:"memory.high"' in two.metadata.managed_fields[1].fields_v1["f:spec"]["f:knobs"]
    assert applied(two, {"spec": {}}, key, Hold, FieldWriter("bob", "spec", WALL)).spec.knobs == ("cpu.max",)


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param([{"uid": "u"} | OWNER, {"uid": "u"} | OWNER], id="twice the same"),
        pytest.param([OWNER], id="without its key"),
        pytest.param(["u"], id="no object"),
    ],
)
def test_items_must_be_distinct(owners: list[Any]) -> None:
    with pytest.raises(Invalid, match="uid"):
        apply(None, {"metadata": {"ownerReferences": owners}, "spec": {"minimum": {"cpu": "1"}}}, "ann")


def test_many_editors_are_summed_up() -> None:
    obj = apply(None, {"spec": {"minimum": {"cpu": "1"}}}, "founder")
    for n in range(2 * MOST_MANAGERS):
        obj = update(obj, {"metadata": {"labels": dict(obj.metadata.labels) | {f"l{n}": "x"}}}, f"editor-{n}")
    entries = [e for e in obj.metadata.managed_fields if e.operation == "Update"]
    assert len(entries) == MOST_MANAGERS
    assert {path for e in entries for path in paths(e.fields_v1)} == {
        ("f:metadata", "f:labels", f"f:l{n}") for n in range(2 * MOST_MANAGERS)
    }
    assert entries[-1].manager == f"editor-{2 * MOST_MANAGERS - 1}"


def test_a_client_may_forget_all_owners_and_need_not_repeat_them() -> None:
    obj = apply(None, {"spec": {"minimum": {"cpu": "1"}}}, "founder")
    for sent, kept in (([{}], ()), ([], obj.metadata.managed_fields)):
        raw = plain(obj)
        wish: Object = convert(raw | {"metadata": raw["metadata"] | {"managedFields": sent}}, MinimalReservationPolicy)  # type: ignore[assignment]
        assert updated(obj, wish, FieldWriter("ann", "spec", WALL)).metadata.managed_fields == kept
