"""One object in all the forms that clients ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.manager.api.forms import Kept, age
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Condition, Meta, NodeQoS, NodeQoSStatus
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import BASE, POLICIES, Lines, Manager, assemble, policy

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OLD_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
SOON = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def test_a_table_shows_the_columns_of_the_kind(api: httpx.AsyncClient) -> None:
    await api.post(POLICIES, json=policy("db", spec={"units": 3}))
    table = (await api.get(POLICIES, headers={"accept": TABLE})).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [column["name"].upper() for column in table["columnDefinitions"]]
    assert columns == ["NAME", *(column.name for column in KINDS["MinimalReservationPolicy"].columns), "AGE"]
    shown = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    assert (shown["NAME"], shown["UNITS"], shown["TTL"], shown["AGE"]) == ("db", "3", "<none>", "0s")
    assert {c["name"]: c["priority"] for c in table["columnDefinitions"]}["Ttl"] == 1
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"]
    old = (await api.get(POLICIES, headers={"accept": OLD_TABLE})).json()
    assert (old["apiVersion"], old["columnDefinitions"]) == ("meta.k8s.io/v1beta1", table["columnDefinitions"])


async def test_a_table_and_a_field_selector_know_a_condition_by_its_type(
    manager: Manager, api: httpx.AsyncClient
) -> None:
    for name, ready in (("n1", "True"), ("n2", "False")):
        condition = Condition(type="Ready", status=ready)
        node = NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(conditions=(condition,)))
        await manager.store.put(node)
        await manager.store.put(node, part="status")
    table = (await api.get(f"{BASE}/nodeqoses", headers={"accept": TABLE})).json()
    at = [column["name"] for column in table["columnDefinitions"]].index("Ready")
    assert [row["cells"][at] for row in table["rows"]] == ["True", "False"]
    chosen = await api.get(f"{BASE}/nodeqoses", params={"fieldSelector": "status.conditions.Ready.status=True"})
    assert [item["metadata"]["name"] for item in chosen.json()["items"]] == ["n1"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "MinimalReservationPolicy")]
)
async def test_a_row_brings_as_much_of_its_object_as_asked(api: httpx.AsyncClient, include: str, kind: str) -> None:
    await api.post(POLICIES, json=policy("db"))
    one = await api.get(f"{POLICIES}/db", headers={"accept": TABLE}, params={"includeObject": include})
    assert one.json()["rows"][0].get("object", {}).get("kind") == kind


async def test_a_table_has_pages(api: httpx.AsyncClient) -> None:
    for name in "abc":
        await api.post(POLICIES, json=policy(name))
    meta = (await api.get(POLICIES, headers={"accept": TABLE}, params={"limit": "2"})).json()["metadata"]
    assert (bool(meta["continue"]), meta["remainingItemCount"]) == (True, 1)


async def test_bare_metadata(api: httpx.AsyncClient) -> None:
    made = (await api.post(POLICIES, json=policy("db"))).json()
    one = (await api.get(f"{POLICIES}/db", headers={"accept": PARTIAL})).json()
    assert one == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    many = (await api.get(POLICIES, headers={"accept": PARTIALS})).json()
    assert (many["kind"], many["items"]) == ("PartialObjectMetadataList", [one])


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/json", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,*/*", 200),
        ("text/html,application/xhtml+xml,*/*;q=0.8", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", 406),
        ("", 406),
    ],
)
async def test_what_is_spoken(api: httpx.AsyncClient, accept: str, code: int) -> None:
    answer = await api.get(POLICIES, headers={"accept": accept})
    assert (answer.status_code, answer.json()["kind"]) == (
        code,
        "MinimalReservationPolicyList" if code == 200 else "Status",
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"), (600, "10m"), (10799, "179m"),
        (10800, "3h"), (11000, "3h3m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"),
        (691200, "8d"), (63072000, "2y"), (63158400, "2y1d"), (252288000, "8y"),
    ],
)  # fmt: skip
def test_an_age_reads_as_in_kubernetes(seconds: int, text: str) -> None:
    assert age(datetime.fromtimestamp(WALL, UTC), WALL + seconds) == text


# -- watches


def watching(manager: Manager, accept: str, query: str) -> Lines:
    lines = Lines(manager, POLICIES, query)
    lines.scope["headers"].append((b"accept", accept.encode()))
    return lines


async def test_a_watch_can_be_a_table(manager: Manager, api: httpx.AsyncClient) -> None:
    await api.post(POLICIES, json=policy("db"))
    async with watching(manager, TABLE, "watch=1") as lines:
        event = await lines.next()
    assert (event["type"], event["object"]["kind"], event["object"]["rows"][0]["cells"][0]) == ("ADDED", "Table", "db")


@pytest.mark.parametrize(
    ("query", "types"),
    [
        pytest.param("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ["ADDED", "BOOKMARK"], id="asked for"),
        pytest.param("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", ["MODIFIED"], id="not wanted"),
    ],
)
async def test_initial_events(manager: Manager, api: httpx.AsyncClient, query: str, types: list[str]) -> None:
    await api.post(POLICIES, json=policy("db"))
    async with Lines(manager, POLICIES, f"watch=1&allowWatchBookmarks=true&{query}") as lines:
        if types == ["MODIFIED"]:
            await api.put(f"{POLICIES}/db", json=policy("db", spec={"units": 2}))
        events = [await lines.next() for _ in types]
    assert [event["type"] for event in events] == types
    marked = events[-1]["object"]["metadata"].get("annotations", {})
    assert marked == ({"k8s.io/initial-events-end": "true"} if len(types) == 2 else {})


async def test_an_exact_revision_is_the_present_or_gone(api: httpx.AsyncClient) -> None:
    first = (await api.get(POLICIES)).json()["metadata"]["resourceVersion"]
    exact = {"resourceVersion": first, "resourceVersionMatch": "Exact"}
    assert (await api.get(POLICIES, params=exact)).status_code == 200
    await api.post(POLICIES, json=policy("db"))
    assert (await api.get(POLICIES, params=exact)).status_code == 410


# -- unknown fields


@pytest.mark.parametrize(
    ("validation", "code", "warned"),
    [("Strict", 422, False), ("", 422, False), ("Warn", 201, True), ("Ignore", 201, False)],
)
async def test_unknown_fields(api: httpx.AsyncClient, validation: str, code: int, warned: bool) -> None:
    wish = policy("db", spec={"colour": "red", "lending": {"tomorrow": 1}})
    made = await api.post(POLICIES, json=wish, params={"fieldValidation": validation} if validation else {})
    assert made.status_code == code
    warnings = made.headers.get_list("warning")
    strays = ["spec.colour", "spec.lending.tomorrow"] if warned else []
    assert warnings == [f'299 - "unknown field \\"{stray}\\""' for stray in strays]
    assert code != 201 or set(made.json()["spec"]) <= {"minimum", "lending"}


async def test_leniency_ends_at_wrong_values(api: httpx.AsyncClient) -> None:
    wish = policy("db", spec={"colour": "red", "units": "many"})
    refused = await api.post(POLICIES, json=wish, params={"fieldValidation": "Ignore"})
    assert [cause["field"] for cause in refused.json()["details"]["causes"]] == ["spec.units"]
    assert (await api.post(POLICIES, json=wish, params={"fieldValidation": "Maybe"})).status_code == 400


# -- discovery


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
async def test_discovery_in_one_document(api: httpx.AsyncClient, version: str) -> None:
    accept = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json"
    answer = await api.get("/apis", headers={"accept": accept})
    assert (
        answer.headers["content-type"] == f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    (group,) = answer.json()["items"]
    resources = {entry["resource"]: entry for entry in group["versions"][0]["resources"]}
    legacy = {entry["name"]: entry for entry in (await api.get(BASE)).json()["resources"]}
    assert set(resources) == {name for name in legacy if "/" not in name}
    assert all(resources[name]["verbs"] == legacy[name]["verbs"] for name in resources)
    assert resources["holds"]["subresources"][0]["subresource"] == "status"
    assert (await api.get("/api", headers={"accept": accept})).json()["items"] == []


# -- all forms agree

names = st.text("abc", min_size=1, max_size=4)
labels = st.dictionaries(names, st.text("abc019", min_size=1, max_size=4), max_size=3)
amounts = st.sampled_from(["1", "500m", "0.25", "2e3", "1Gi", "64Mi", "10%"])
specs = st.fixed_dictionaries(
    {"minimum": st.dictionaries(st.sampled_from(["cpu", "memory", "network", "diskRead"]), amounts, min_size=1)},
    optional={
        "ttl": st.sampled_from(["1h", "90s", "1h30m"]),
        "selector": st.fixed_dictionaries({}, optional={"matchLabels": labels}),
        "rollout": st.just({"canaryPercent": 10}),
    },
)


@given(name=names, labels=labels, spec=specs)
@SOON
async def test_every_form_shows_the_same_object(name: str, labels: dict[str, str], spec: dict[str, Any]) -> None:
    manager = assemble(MemoryStore(lambda: WALL))
    async with manager.client() as api:
        created = await api.post(POLICIES, json=policy(name, metadata={"labels": labels}) | {"spec": spec})
        if created.status_code != 201:
            assert created.status_code == 422, created.text  # 1Gi of a percentage, and the like
            return
        made = created.json()
        (listed,) = (await api.get(POLICIES)).json()["items"]
        rows = (await api.get(POLICIES, headers={"accept": TABLE}, params={"includeObject": "Object"})).json()["rows"]
        async with Lines(manager, POLICIES, "watch=1") as lines:
            watched = (await lines.next())["object"]
        copied = dict(made, metadata={"name": "copy", "labels": labels})
        again = (await api.post(POLICIES, json=copied)).json()
    assert made == listed == rows[0]["object"] == watched
    assert again["spec"] == made["spec"], "what we show, we accept"


def test_a_large_object_that_changes_again_and_again_takes_a_quarter_of_what_is_kept() -> None:
    kept = Kept[bytes](4 << 20)
    kept.keep(("small", "1"), b"s", 1)
    for revision in range(40):
        kept.keep(("large", str(revision)), b"x", 100 << 10)
    remembered = [revision for revision in range(40) if kept.get(("large", str(revision)))]
    assert remembered == list(range(30, 40))
    assert kept.get(("small", "1")) == b"s"
