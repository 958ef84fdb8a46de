"""Where Kubernetes says what an empty field, an owner or a revision means, it means the same here."""

from __future__ import annotations

import httpx2 as httpx
import pytest

from j10ce.manager.api import query
from j10ce.model.stored import Key
from tests.manager.api.test_verbs import MERGE, create, status_of
from tests.manager.assembled import POLICIES, policy

TOKEN = query.encode(query.Position("1", Key("MinimalReservationPolicy", "default", "db")))


@pytest.mark.parametrize("field", ["nodeSelector", "ttl", "rollout", "lending", "units"])
async def test_a_field_that_is_null_is_not_given(api: httpx.AsyncClient, field: str) -> None:
    made = await api.post(POLICIES, json=policy("db", spec={field: None}))
    assert (made.status_code, field in made.json()["spec"]) == (201, False)
    put = await api.put(
        f"{POLICIES}/db", json=policy("db", spec={field: None, "minimum": {"cpu": "2", "memory": None}})
    )
    assert (put.status_code, put.json()["spec"]["minimum"]) == (200, {"cpu": "2"})


async def test_a_status_that_is_null_is_none(api: httpx.AsyncClient) -> None:
    assert (await api.post(POLICIES, json={**policy("db"), "status": None})).status_code == 201


async def test_a_word_of_a_selector_that_is_null_is_a_mistake(api: httpx.AsyncClient) -> None:
    """Without it the policy would be for everybody."""
    answer = await api.post(POLICIES, json=policy("db", spec={"selector": {"matchLabels": {"app": None}}, "ttl": None}))
    assert answer.status_code == 422
    assert "matchLabels" in answer.json()["message"]


@pytest.mark.parametrize("none", [[], None])
async def test_no_finalizers_are_none(api: httpx.AsyncClient, none: list[str] | None) -> None:
    assert (await api.post(POLICIES, json=policy("db", metadata={"finalizers": none}))).status_code == 201
    assert (await api.put(f"{POLICIES}/db", json=policy("db", metadata={"finalizers": none}))).status_code == 200
    merged = {"metadata": {"finalizers": none}}
    assert (await api.patch(f"{POLICIES}/db", json=merged, headers=MERGE)).status_code == 200
    answer = await api.post(POLICIES, json=policy("web", metadata={"finalizers": ["x/y"]}))
    assert answer.status_code == 422


async def test_an_object_has_one_controller_at_most(api: httpx.AsyncClient) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1", "controller": True}
    other = {**owner, "uid": "u-2", "controller": False}
    assert (
        await api.post(POLICIES, json=policy("db", metadata={"ownerReferences": [owner, other]}))
    ).status_code == 201
    twice = policy("web", metadata={"ownerReferences": [owner, {**other, "controller": True}]})
    assert status_of(await api.post(POLICIES, json=twice)) == (422, "Invalid")


async def test_an_object_of_a_revision_of_the_future_is_not_there_yet(api: httpx.AsyncClient) -> None:
    (made, _) = await create(api, "db", "web")
    there = (await api.get(POLICIES)).json()["metadata"]["resourceVersion"]
    assert int(there) > int(made["metadata"]["resourceVersion"])
    assert (await api.get(f"{POLICIES}/db", params={"resourceVersion": there})).json() == made
    answer = await api.get(f"{POLICIES}/db", params={"resourceVersion": str(int(there) + 1)})
    assert status_of(answer) == (504, "Timeout")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"resourceVersion": "abc"}, 422, id="no revision"),
        pytest.param({"resourceVersion": "abc", "watch": "1"}, 422, id="a watch from no revision"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, 422, id="nothing to match"),
        pytest.param({"resourceVersion": "1", "resourceVersionMatch": "Roughly"}, 422, id="an unknown match"),
        pytest.param({"resourceVersion": "9" * 19, "resourceVersionMatch": "NotOlderThan"}, 504, id="of the future"),
        pytest.param({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, id="exactly any"),
        pytest.param({"resourceVersion": "1", "continue": TOKEN}, 422, id="another one than the token's"),
        pytest.param({"resourceVersion": "1", "watch": "1", "resourceVersionMatch": "NotOlderThan"}, 422, id="a watch"),
        pytest.param({"sendInitialEvents": "true", "watch": "1"}, 422, id="a watch that says half of it"),
        pytest.param({"sendInitialEvents": "true"}, 422, id="a list that begins like a watch"),
    ],
)
async def test_a_revision_that_cannot_be_served_is_reported(
    api: httpx.AsyncClient, query: dict[str, str], code: int
) -> None:
    answer = await api.get(POLICIES, params=query)
    assert (answer.status_code, answer.json()["kind"]) == (code, "Status")
