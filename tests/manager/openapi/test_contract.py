"""The API keeps to its own OpenAPI document, whatever a client sends."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from j10ce.manager.openapi import document
from j10ce.model.catalogue import KINDS
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager import process
from tests.manager.assembled import BASE, POLICIES, TOKEN, Manager, assemble, policy
from tests.manager.process import Running

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
]
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Host": "localhost:7443"}
PATIENT = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))

app = assemble(MemoryStore(lambda: WALL)).app
schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)
over_network = schemathesis.openapi.from_dict(document.document())  # the one above asks `app`, whatever the address
over_network.config.phases.coverage.enabled = False  # a thousand ways to spoil a body; the quick test has them


def ends(case: schemathesis.Case) -> schemathesis.Case:
    """A watch never ends, so the question is asked without. What was wrong may have been that, or an empty list, of
    which nothing is sent: then nothing is wrong any more."""
    asked = case.query or {}
    case.query = {name: value for name, value in asked.items() if name != "watch" and value not in ([], {})}
    wrong = case.meta is not None and case.meta.generation.mode.is_negative
    assume(not wrong or case.query == asked)
    return case


def fitting(checks: list[Any], code: int) -> list[Any]:
    """What is wrong may be its length: 413 refuses it too, which the check of refusals does not know."""
    return [check for check in checks if not (code == 413 and check is negative_data_rejection)]


# One kind with a namespace and one without; the rest is the same code, and the slow test below asks for it.
@schema.include(tag=["Hold", "NodeQoS"]).parametrize()
@PATIENT
def test_every_answer_is_as_documented(case: schemathesis.Case) -> None:
    response = ends(case).call(headers=HEADERS)
    case.validate_response(response, checks=fitting(CHECKS, response.status_code), headers=HEADERS)


def test_the_document_covers_every_kind() -> None:
    paths = document.document()["paths"]
    for kind in KINDS.values():
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        assert "get" in paths[f"{BASE}{scope}/{kind.plural}/{{name}}"]
        assert ("post" in paths[f"{BASE}{scope}/{kind.plural}"]) is kind.stored


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.printable, max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "name",
    "labels",
    "minimum",
    "cpu",
    "selector",
    "units",
    "ttl",
)


@st.composite
def spoiled_policies(draw: st.DrawFn) -> dict[str, Any]:
    """A policy with some of its parts replaced, removed or added at any depth."""
    made = policy()
    for _ in range(draw(st.integers(1, 4))):
        here: Any = made
        while isinstance(below := here.get(draw(st.sampled_from(sorted(here)))) if here else None, dict):
            here = below
        field = draw(st.sampled_from([*sorted(here), *FIELDS]))
        here[field] = draw(json_values)
    return made


@given(body=spoiled_policies() | json_values)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_body_is_stored_or_refused_with_reasons(manager: Manager, body: Any) -> None:
    async with manager.client() as api:
        created = await api.post(POLICIES, json=body)
        if created.status_code == 201:
            made = created.json()
            where = f"{POLICIES}/{made['metadata']['name']}"
            assert (await api.get(where)).json() == made
            again = await api.put(where, json=made)
            assert (again.status_code, again.json()) == (200, made), "what we show, we accept"
            assert (await api.delete(where)).status_code == 200
        else:
            refusal(created)


@given(patch=spoiled_policies() | json_values)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_patch_is_applied_or_refused_with_reasons(manager: Manager, patch: Any) -> None:
    async with manager.client() as api:
        await api.post(POLICIES, json=policy())
        headers = {"content-type": "application/merge-patch+json"}
        changed = await api.patch(f"{POLICIES}/db", json=patch, headers=headers)
        if changed.status_code != 200:
            refusal(changed)
        await api.delete(f"{POLICIES}/db")


@given(text=st.binary(max_size=60), method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_bytes_are_refused_with_reasons(manager: Manager, text: bytes, method: str) -> None:
    async with manager.client() as api:
        await api.post(POLICIES, json=policy())
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        answer = await api.request(
            method, POLICIES if method == "POST" else f"{POLICIES}/db", content=text, headers=headers
        )
        if not (method == "DELETE" and not text) and not (method == "PATCH" and text.strip() == b"{}"):
            refusal(answer)


def refusal(answer: httpx.Response) -> None:
    assert answer.status_code in (400, 404, 409, 413, 422), answer.text
    assert answer.json()["kind"] == "Status"
    assert answer.json()["message"]


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    manager = process.start(tmp_path_factory.mktemp("manager"))
    yield manager
    process.end(manager.process)


@pytest.mark.slow
@over_network.parametrize()
@settings(PATIENT, max_examples=10)
def test_the_real_server_keeps_to_it_too(case: schemathesis.Case, real_server: Running) -> None:
    headers = {"Authorization": f"Bearer {real_server.token}"}
    response = ends(case).call(base_url=real_server.server, headers=headers)
    # Strangers are held back after a while; what random requests have wrong may be ignored, as unknown parameters are.
    checks = [check for check in CHECKS if check not in (ignored_auth, negative_data_rejection)]
    if case.operation.path.endswith(("workloads", "workloads/{name}")):
        checks.remove(not_a_server_error)  # there is no agent
    case.validate_response(response, checks=fitting(checks, response.status_code), headers=headers)
