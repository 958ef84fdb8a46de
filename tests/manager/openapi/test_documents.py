"""The documents are consistent, found where clients look, and cached by their content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.openapi import document as openapi
from j10ce.manager.openapi import kubectl, swagger_wire
from j10ce.manager.openapi.serve import ASKED_V2
from j10ce.model.catalogue import KINDS
from tests.manager.assembled import Manager

V3 = json.loads(json.dumps(kubectl.version3(openapi.document())))
V2 = json.loads(json.dumps(kubectl.version2(openapi.document())))
GROUP = "/openapi/v3/apis/j10ce.io/v1alpha1"
BOTH = pytest.mark.parametrize("document", [pytest.param(V3, id="3.0"), pytest.param(V2, id="2.0")])


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(below)


def schemas(document: dict[str, Any]) -> dict[str, Any]:
    return document.get("definitions") or document["components"]["schemas"]  # type: ignore[no-any-return]


@BOTH
def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    refs = [part["$ref"] for part in walk(document) if isinstance(part.get("$ref"), str)]
    assert len(refs) > 100
    for ref in refs:
        assert ref.rpartition("/")[2] in schemas(document), ref


@BOTH
def test_nothing_is_spelled_as_only_3_1_can(document: dict[str, Any]) -> None:
    for name, schema in schemas(document).items():
        for part in walk(schema):
            if "properties" in part and isinstance(part["properties"], dict) and "type" not in part["properties"]:
                assert part["type"] == "object", name
            assert not isinstance(part.get("type"), list), name
            assert not {"const", "examples", "$defs", "anyOf"} & set(part), name


@BOTH
def test_every_kind_is_found_by_group_version_and_kind(document: dict[str, Any]) -> None:
    for kind in KINDS:
        gvk = {"group": "j10ce.io", "version": "v1alpha1", "kind": kind}
        assert [name for name, s in schemas(document).items() if gvk in s.get(kubectl.GVK, ())] == [
            f"io.j10ce.v1alpha1.{kind}"
        ]
        patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
        dry = [p for p in patches if p[kubectl.GVK] == gvk and any(q["name"] == "dryRun" for q in p["parameters"])]
        assert bool(dry) is KINDS[kind].stored


@BOTH
def test_every_field_says_what_it_means(document: dict[str, Any]) -> None:
    for kind in KINDS:
        spec = schemas(document).get(f"io.j10ce.v1alpha1.{kind}Spec", {"properties": {}})
        assert not [name for name, field in spec["properties"].items() if not field.get("description")]


def test_the_protobuf_form_holds_what_the_json_form_holds() -> None:
    document = fields(swagger_wire.document(V2))
    definitions = [fields(pair) for pair in fields(document[9][0])[1]]
    assert {pair[1][0].decode() for pair in definitions} == set(V2["definitions"])
    paths = [fields(pair) for pair in fields(document[8][0])[2]]
    assert [pair[1][0].decode() for pair in paths] == list(V2["paths"])
    spec = next(fields(pair[2][0]) for pair in definitions if pair[1][0].endswith(b".CpuSection"))
    assert {fields(pair)[1][0].decode() for pair in fields(spec[25][0])[1]} == set(
        V2["definitions"]["io.j10ce.v1alpha1.CpuSection"]["properties"]
    )
    assert spec[4][0].decode() == V2["definitions"]["io.j10ce.v1alpha1.CpuSection"]["description"]


def fields(data: bytes) -> dict[int, list[bytes]]:
    """A message, field by field; every one of those looked at here has a length."""
    by_name: dict[int, list[bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        match tag & 7:
            case 0:
                _, end = varint(data, at)
            case 1:
                end = at + 8
            case 2:
                length, at = varint(data, at)
                end = at + length
            case other:
                raise AssertionError(f"wire type {other} at {at}")
        by_name.setdefault(tag >> 3, []).append(data[at:end])
        at = end
    assert at == len(data)
    return by_name


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


async def test_the_index_leads_to_the_group(api: httpx.AsyncClient) -> None:
    index = (await api.get("/openapi/v3")).json()
    url = index["paths"]["apis/j10ce.io/v1alpha1"]["serverRelativeURL"]
    assert url.startswith(f"{GROUP}?hash=")
    answer = await api.get(url)
    assert answer.json() == V3
    assert "immutable" in answer.headers["cache-control"]
    assert "immutable" not in (await api.get(GROUP)).headers.get("cache-control", "")


async def test_an_old_hash_leads_to_the_present_one(api: httpx.AsyncClient) -> None:
    moved = await api.get(f"{GROUP}?hash=OLD")
    assert moved.status_code == 301
    assert (await api.get(moved.headers["location"])).json() == V3


@pytest.mark.parametrize("path", ["/openapi/v3", GROUP, "/openapi/v2"])
async def test_what_a_client_has_is_not_sent_again(api: httpx.AsyncClient, path: str) -> None:
    first = await api.get(path)
    again = await api.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        pytest.param(ASKED_V2, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", id="kubectl"),
        pytest.param("application/json", "application/json", id="json"),
        pytest.param(f"{ASKED_V2};q=1, application/json", ASKED_V2.replace("@", "."), id="first choice"),
        pytest.param("*/*", "application/json", id="anything"),
    ],
)
async def test_version_2_comes_as_asked(api: httpx.AsyncClient, accept: str, media_type: str) -> None:
    answer = await api.get("/openapi/v2", headers={"accept": accept})
    assert answer.headers["content-type"] == media_type
    if media_type == "application/json":
        assert answer.json() == V2
    else:
        assert answer.content == swagger_wire.document(V2)


async def test_another_form_is_not_there(api: httpx.AsyncClient) -> None:
    refused = await api.get("/openapi/v2", headers={"accept": "text/html"})
    assert (refused.status_code, refused.json()["reason"]) == (406, "NotAcceptable")


async def test_other_paths_and_methods_are_refused(api: httpx.AsyncClient) -> None:
    assert (await api.get("/openapi/v4")).status_code == 404
    assert (await api.post("/openapi/v3")).status_code == 405


async def test_a_stranger_reads_no_documents(manager: Manager) -> None:
    async with manager.client(authorization="Bearer wrong") as stranger:
        for path in ("/openapi/v3", GROUP, "/openapi/v2"):
            assert (await stranger.get(path)).status_code == 401
