"""JSON patch (RFC 6902) and server-side apply, as clients send them."""

from __future__ import annotations

import asyncio
import copy
import threading
from pathlib import Path
from typing import Any

import httpx2 as httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Invalid, QosError
from j10ce.manager.api import verbs
from j10ce.manager.changes.patches import MOST_OPERATIONS, merge, patched, read_operations
from j10ce.store.sqlite.database import Database
from j10ce.store.sqlite.store import SqliteStore
from j10ce.testing.build import WALL
from tests.manager.assembled import POLICIES, assemble, policy

JSON_PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
TYPED = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}
TYPES = b"apiVersion: j10ce.io/v1alpha1\nkind: MinimalReservationPolicy\n"
WHERE = f"{POLICIES}/db"


def done(document: Any, *operations: dict[str, Any]) -> Any:
    return patched(copy.deepcopy(document), read_operations(msgspec.json.encode(operations)))


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


# -- the examples of RFC 6902's appendix


@pytest.mark.parametrize(
    ("document", "operation", "after"),
    [
        pytest.param({"foo": "bar"}, op("add", "/baz", value="qux"), {"foo": "bar", "baz": "qux"}, id="A.1"),
        pytest.param({"foo": [1, 2]}, op("add", "/foo/1", value=3), {"foo": [1, 3, 2]}, id="A.2"),
        pytest.param({"baz": 1, "foo": 2}, op("remove", "/baz"), {"foo": 2}, id="A.3"),
        pytest.param({"foo": [1, 2, 3]}, op("remove", "/foo/1"), {"foo": [1, 3]}, id="A.4"),
        pytest.param({"baz": 1, "foo": 2}, op("replace", "/baz", value=3), {"baz": 3, "foo": 2}, id="A.5"),
        pytest.param(
            {"foo": {"bar": 1, "waldo": 2}, "qux": {}},
            {"op": "move", "from": "/foo/waldo", "path": "/qux/thud"},
            {"foo": {"bar": 1}, "qux": {"thud": 2}},
            id="A.6",
        ),
        pytest.param({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}, id="A.7"),
        pytest.param({"baz": [1, {"a": 2}]}, op("test", "/baz/1", value={"a": 2}), {"baz": [1, {"a": 2}]}, id="A.8"),
        pytest.param({"a": 1}, op("add", "/child", value={"b": {}}), {"a": 1, "child": {"b": {}}}, id="A.10"),
        pytest.param({"a": 1}, op("add", "/b", value=2, xyz=3), {"a": 1, "b": 2}, id="A.11"),
        pytest.param({"/": 9, "~1": 10}, op("test", "/~01", value=10), {"/": 9, "~1": 10}, id="A.14"),
        pytest.param({"foo": ["bar"]}, op("add", "/foo/-", value=["x"]), {"foo": ["bar", ["x"]]}, id="A.16"),
        pytest.param({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}, id="copy"),
        pytest.param({"a": 1}, op("replace", "", value=[]), [], id="the whole"),
    ],
)
def test_operations(document: Any, operation: dict[str, Any], after: Any) -> None:
    assert done(document, operation) == after


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(op("test", "/baz", value="bar"), id="A.9 another value"),
        pytest.param(op("add", "/baz/bat", value=1), id="A.12 into nothing"),
        pytest.param(op("test", "/one", value=True), id="one is not true"),
        pytest.param(op("remove", "/absent"), id="what is not there"),
        pytest.param(op("replace", "/list/5", value=1), id="past the end"),
        pytest.param(op("replace", "/list/-", value=1), id="after the end"),
        pytest.param(op("add", "/list/01", value=1), id="a padded index"),
        pytest.param(op("add", "/one/x", value=1), id="inside of a number"),
        pytest.param(op("add", "one", value=1), id="no pointer"),
        pytest.param(op("add", "/x"), id="no value"),
        pytest.param(op("move", "/x"), id="from nowhere"),
        pytest.param({"op": "move", "from": "/map", "path": "/map/in"}, id="into itself"),
        pytest.param(op("explode", "/x"), id="unknown"),
        pytest.param({"path": "/x"}, id="no operation"),
    ],
)
def test_operations_that_fail(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        done({"one": 1, "list": [1], "map": {}}, operation)


def test_a_patch_cannot_outgrow_us() -> None:
    double = {"op": "copy", "from": "/a", "path": "/a/x"}
    with pytest.raises(Invalid, match="copies more than"):
        done({"a": {"b": "c"}}, *[double | {"path": f"/a/{n}"} for n in range(200)])
    with pytest.raises(Invalid, match="too many"):
        done({}, *[op("add", "/a", value=1)] * (MOST_OPERATIONS + 1))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~0", max_size=2), inner, max_size=3),
    max_leaves=6,
)
pointers = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "~0", "~1", ""]), max_size=3).map(
    lambda steps: "".join(f"/{step}" for step in steps)
)


@given(document=st.dictionaries(st.sampled_from("ab"), values), pointer=pointers, value=values)
def test_what_was_added_is_there_and_can_be_taken_away(document: Any, pointer: str, value: Any) -> None:
    try:
        added = done(document, op("add", pointer, value=value))
    except Invalid:
        return
    if not pointer.endswith("-"):
        assert done(added, op("test", pointer, value=value)) == added
    if pointer and not pointer.endswith("-"):
        removed = done(added, op("remove", pointer))
        assert len(msgspec.json.encode(removed)) <= len(msgspec.json.encode(added))


@given(document=values, raw=st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), values)))
def test_any_operations_are_done_or_refused(document: Any, raw: Any) -> None:
    try:
        done(document, *raw)
    except QosError:
        pass


@given(old=values, patch=values)
def test_a_merge_patch_repeated_is_the_same(old: Any, patch: Any) -> None:
    once = merge(old, patch)
    assert merge(once, patch) == once


# -- over HTTP


async def test_a_json_patch_changes_an_object(api: httpx.AsyncClient) -> None:
    made = (await api.post(POLICIES, json=policy(spec={"units": 1}))).json()
    operations = [op("test", "/spec/units", value=1), op("replace", "/spec/units", value=2)]
    changed = await api.patch(WHERE, json=operations, headers=JSON_PATCH, params={"fieldManager": "me"})
    assert (changed.status_code, changed.json()["spec"]["units"]) == (200, 2)
    assert (await api.patch(WHERE, json=operations, headers=JSON_PATCH)).status_code == 422
    stale = [op("replace", "/metadata/resourceVersion", value=made["metadata"]["resourceVersion"])]
    assert (await api.patch(WHERE, json=stale, headers=JSON_PATCH)).status_code == 409
    moved = await api.patch(WHERE, json=[op("replace", "/metadata/name", value="x")], headers=JSON_PATCH)
    assert moved.status_code == 400
    owners = {entry["manager"]: entry["fieldsV1"] for entry in changed.json()["metadata"]["managedFields"]}
    assert owners["me"] == {"f:spec": {"f:units": {}}}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{}", 400, id="no list"),
        pytest.param(b"[", 400, id="no JSON"),
        pytest.param(b'[{"op": "remove", "path": "/spec"}]', 422, id="what is required"),
        pytest.param(b'[{"op": "replace", "path": "", "value": 1}]', 422, id="no object"),
    ],
)
async def test_a_bad_json_patch_is_refused(api: httpx.AsyncClient, body: bytes, code: int) -> None:
    made = (await api.post(POLICIES, json=policy())).json()
    assert (await api.patch(WHERE, content=body, headers=JSON_PATCH)).status_code == code
    assert (await api.get(WHERE)).json() == made


async def test_an_apply_creates_and_changes(api: httpx.AsyncClient) -> None:
    yaml = TYPES + b"spec:\n  minimum: {cpu: 500m}\n  ttl: 1h\nmetadata:\n  labels: {day: 2026-01-01}\n"
    made = await api.patch(WHERE, content=yaml, headers=APPLY, params={"fieldManager": "me"})
    assert made.status_code == 201
    assert made.json()["metadata"]["labels"] == {"day": "2026-01-01"}, "a date is text, as in JSON"
    again = await api.patch(WHERE, content=yaml, headers=APPLY, params={"fieldManager": "me"})
    assert (again.status_code, again.json()) == (200, made.json())
    less = await api.patch(
        WHERE, json=TYPED | {"spec": {"minimum": {"cpu": "1"}}}, headers=APPLY, params={"fieldManager": "me"}
    )
    assert less.json()["spec"] == {"minimum": {"cpu": "1"}}


async def test_a_conflict_tells_fields_and_owners(api: httpx.AsyncClient) -> None:
    await api.post(POLICIES, json=policy(spec={"units": 1}), params={"fieldManager": "them"})
    wish, me = TYPED | {"spec": {"units": 2}}, {"fieldManager": "me"}
    refused = await api.patch(WHERE, json=wish, headers=APPLY, params=me)
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert refused.json()["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "field": ".spec.units",
            "message": 'conflict with "them" using j10ce.io/v1alpha1',
        }
    ]
    dry = await api.patch(WHERE, json=wish, headers=APPLY, params=me | {"force": "true", "dryRun": "All"})
    assert dry.json()["spec"]["units"] == 2
    assert (await api.get(WHERE)).json()["spec"]["units"] == 1
    forced = await api.patch(WHERE, json=wish, headers=APPLY, params=me | {"force": "true"})
    assert forced.json()["spec"]["units"] == 2


async def test_a_status_is_applied_on_its_own(api: httpx.AsyncClient) -> None:
    me, fields = {"fieldManager": "me"}, TYPED | {"status": {"phase": "Active"}, "spec": {"units": 9}}
    assert (await api.patch(f"{WHERE}/status", json=fields, headers=APPLY, params=me)).status_code == 404
    await api.post(POLICIES, json=policy())
    shown = (await api.patch(f"{WHERE}/status", json=fields, headers=APPLY, params=me)).json()
    assert (shown["status"]["phase"], shown["spec"].get("units")) == ("Active", None)
    entry = shown["metadata"]["managedFields"][-1]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:phase": {}}})


@pytest.mark.parametrize(
    ("body", "params", "code"),
    [
        pytest.param(b"{}", {}, 400, id="by nobody"),
        pytest.param(b"[]", {"fieldManager": "me"}, 422, id="a list"),
        pytest.param(b"a: [", {"fieldManager": "me"}, 400, id="no YAML"),
        pytest.param(b"a: &x [1]\nb: *x\n", {"fieldManager": "me"}, 400, id="an alias"),
        pytest.param(TYPES + b"spec: {units: many}", {"fieldManager": "me"}, 422, id="a wrong type"),
        pytest.param(TYPES + b"spec: {colour: red}", {"fieldManager": "me"}, 422, id="an unknown field"),
        pytest.param(TYPES + b"metadata: {name: web}", {"fieldManager": "me"}, 400, id="another name"),
        pytest.param(b"apiVersion: j10ce.io/v1alpha1\nkind: Hold", {"fieldManager": "me"}, 400, id="another kind"),
        pytest.param(b"spec: {units: 3}", {"fieldManager": "me"}, 400, id="of no kind"),
        pytest.param(TYPES + b"metadata: {uid: x}", {"fieldManager": "me"}, 409, id="another uid"),
        pytest.param(
            TYPES + b"metadata: {resourceVersion: '1'}\nspec: {units: 3}", {"fieldManager": "me"}, 409, id="stale"
        ),
        pytest.param(TYPES + b"metadata: {managedFields: [{}]}", {"fieldManager": "me"}, 400, id="with owners"),
        pytest.param(TYPES + b"spec: {units: 3}", {"fieldManager": "m" * 129}, 400, id="by a long name"),
    ],
)
async def test_a_bad_apply_is_refused(api: httpx.AsyncClient, body: bytes, params: dict[str, str], code: int) -> None:
    made = (await api.post(POLICIES, json=policy())).json()
    answer = await api.patch(WHERE, content=body, headers=APPLY, params=params)
    assert (answer.status_code, answer.json()["kind"]) == (code, "Status")
    assert (await api.get(WHERE)).json() == made


async def test_what_somebody_decided_before_owners_were_known_is_not_taken_without_asking(
    api: httpx.AsyncClient,
) -> None:
    await api.post(POLICIES, json=policy(spec={"units": 1}))
    merge = {"content-type": "application/merge-patch+json"}
    assert (await api.patch(WHERE, json={"metadata": {"managedFields": [{}]}}, headers=merge)).status_code == 200
    wish, me = TYPED | {"spec": {"units": 2}}, {"fieldManager": "me"}
    refused = await api.patch(WHERE, json=wish, headers=APPLY, params=me)
    assert refused.status_code == 409
    assert "before-first-apply" in refused.json()["details"]["causes"][0]["message"]
    forced = await api.patch(WHERE, json=wish, headers=APPLY, params=me | {"force": "true"})
    assert forced.json()["spec"]["units"] == 2


async def test_owners_that_make_no_sense_are_left_out(api: httpx.AsyncClient) -> None:
    nonsense = {"manager": "evil", "operation": "Apply", "fieldsV1": {"spec": {"units": 7}}}
    made = await api.post(POLICIES, json=policy(metadata={"managedFields": [nonsense]}))
    assert made.status_code == 201
    assert "evil" not in {entry["manager"] for entry in made.json()["metadata"]["managedFields"]}


def labelled_by_eight(api: httpx.AsyncClient) -> asyncio.Future[list[httpx.Response]]:
    merge = {"content-type": "application/merge-patch+json"}
    labels = [{"metadata": {"labels": {f"l{n}": "x"}}} for n in range(8)]
    return asyncio.gather(*(api.patch(WHERE, json=label, headers=merge) for label in labels))


async def test_changes_at_the_same_time_all_happen(tmp_path: Path) -> None:
    manager = assemble(SqliteStore(tmp_path / "objects.db", lambda: WALL))
    async with manager.client() as api:
        await api.post(POLICIES, json=policy())
        assert {answer.status_code for answer in await labelled_by_eight(api)} == {200}
        assert len((await api.get(WHERE)).json()["metadata"]["labels"]) == 8
    await manager.store.close()


async def test_changes_at_the_same_time_all_happen_however_slow_the_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, write = threading.Event(), Database.write

    def written(self: Database, *rows: Any) -> None:
        assert disk.wait(60)
        write(self, *rows)

    disk.set()
    monkeypatch.setattr(Database, "write", written)
    monkeypatch.setattr(verbs, "PAUSE_S", 0)
    manager = assemble(SqliteStore(tmp_path / "objects.db", lambda: WALL))
    async with manager.client() as api:
        await api.post(POLICIES, json=policy())
        disk.clear()
        answers = labelled_by_eight(api)
        for _ in range(1000):  # turns of the loop, in which whoever tries in vain does so often
            await asyncio.sleep(0)
        disk.set()
        assert {answer.status_code for answer in await answers} == {200}
        assert len((await api.get(WHERE)).json()["metadata"]["labels"]) == 8
    await manager.store.close()


def test_a_patch_that_is_tried_again_is_the_same_patch() -> None:
    steps = [
        op("add", "/l", value=[]),
        op("add", "/l/-", value=1),
        op("replace", "/m", value={}),
        op("add", "/m/a", value=2),
    ]
    operations = read_operations(msgspec.json.encode(steps))
    assert [patched({"m": 0}, operations) for _ in range(3)] == [{"l": [1], "m": {"a": 2}}] * 3
