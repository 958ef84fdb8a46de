"""A conflict comes with what to do about it."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.manager.assembled import POLICIES, policy

STALE, OTHER = {"resourceVersion": "1"}, {"uid": "1"}


@pytest.mark.parametrize(
    ("method", "path", "body", "advice"),
    [
        pytest.param("POST", "", policy("db"), "change that one, or choose another name", id="create"),
        pytest.param("PATCH", "/db", {"metadata": STALE}, "read it again", id="a stale change"),
        pytest.param("PATCH", "/db", {"metadata": OTHER}, "made again; read it again", id="a change of another"),
        pytest.param("DELETE", "/db", {"preconditions": STALE}, "read it again", id="a stale delete"),
        pytest.param("DELETE", "/db", {"preconditions": OTHER}, "made again; read it again", id="a delete of another"),
    ],
)
async def test_a_conflict_says_what_to_do(
    api: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], advice: str
) -> None:
    assert (await api.post(POLICIES, json=policy("db"))).status_code == 201
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await api.request(method, POLICIES + path, json=body, headers={"content-type": kind})
    assert (answer.status_code, advice in answer.json()["message"]) == (409, True), answer.text
