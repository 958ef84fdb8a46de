"""The verbs and conventions of the REST API."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.manager.assembled import BASE, POLICIES, Manager, policy

MERGE = {"content-type": "application/merge-patch+json"}


async def create(api: httpx.AsyncClient, *names: str, **labels: str) -> list[dict[str, Any]]:
    made = [await api.post(POLICIES, json=policy(name, metadata={"labels": labels})) for name in names]
    assert {answer.status_code for answer in made} <= {201}
    return [answer.json() for answer in made]


def status_of(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", answer.status_code)
    return answer.status_code, body["reason"]


# -- create and get


async def test_a_created_object_is_stamped_and_found(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert (await api.get(f"{POLICIES}/db")).json() == made


async def test_what_go_clients_leave_empty_is_empty(api: httpx.AsyncClient) -> None:
    wish = policy("db", metadata={"creationTimestamp": None})
    assert (await api.post(POLICIES, json=wish)).json()["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    for n, field in enumerate(("labels", "annotations", "ownerReferences")):
        made = await api.post(POLICIES, json=policy(f"x{n}", metadata={field: None}))
        assert (made.status_code, made.json()["metadata"].get(field)) == (201, None)
    assert (await api.post(POLICIES, json=policy("y", metadata={"labels": 7}))).status_code == 422


async def test_what_is_yet_to_be_created_has_no_revision(api: httpx.AsyncClient) -> None:
    answer = await api.post(POLICIES, json=policy("db", metadata={"resourceVersion": "5"}))
    assert answer.status_code == 400
    assert "resourceVersion" in answer.json()["message"]


async def test_a_delete_by_uid_outlasts_those_who_write(manager: Manager, api: httpx.AsyncClient) -> None:
    """Somebody writes the object between our look and our delete, three times."""
    (made,) = await create(api, "db")
    delete, left = manager.store.delete, [3]

    async def late(*key: Any, **more: Any) -> Any:
        if left[0]:
            left[0] -= 1
            merge = {"content-type": "application/merge-patch+json"}
            body = {"metadata": {"labels": {"n": str(left[0])}}}
            assert (await api.patch(f"{POLICIES}/db", json=body, headers=merge)).status_code == 200
        return await delete(*key, **more)

    manager.store.delete = late  # type: ignore[method-assign]
    options = {"preconditions": {"uid": made["metadata"]["uid"]}}
    gone = await api.request("DELETE", f"{POLICIES}/db", json=options)
    assert (gone.status_code, left) == (200, [0])


async def test_a_manager_is_alive_to_those_who_ask_as_for_kubernetes(api: httpx.AsyncClient) -> None:
    for path in ("/livez", "/livez/ping", "/healthz/ping", "/readyz/ping"):
        assert (await api.get(path)).text == "ok\n"


async def test_a_second_create_is_refused(api: httpx.AsyncClient) -> None:
    await create(api, "db")
    assert status_of(await api.post(POLICIES, json=policy("db"))) == (409, "AlreadyExists")


async def test_a_name_can_be_generated(api: httpx.AsyncClient) -> None:
    wish = policy(metadata={"name": "", "generateName": "db-"})
    names = {(await api.post(POLICIES, json=wish)).json()["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("db-") and len(name) == 8 for name in names)


async def test_a_dry_run_checks_and_stores_nothing(api: httpx.AsyncClient) -> None:
    made = await api.post(POLICIES, json=policy("db"), params={"dryRun": "All"})
    assert made.status_code == 201
    assert made.json()["metadata"]["uid"]
    assert (await api.get(f"{POLICIES}/db")).status_code == 404
    bad = await api.post(POLICIES, json=policy("db", spec={"units": -1}), params={"dryRun": "All"})
    assert bad.status_code == 422


async def test_dry_changes_do_not_show_up_later(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    dry = {"dryRun": "All"}
    put = await api.put(f"{POLICIES}/db", json=policy("db", spec={"units": 7}), params=dry)
    patch = await api.patch(f"{POLICIES}/db", content='{"spec": {"units": 8}}', headers=MERGE, params=dry)
    gone = await api.delete(f"{POLICIES}/db", params=dry)
    assert (put.json()["spec"]["units"], patch.json()["spec"]["units"], gone.status_code) == (7, 8, 200)
    assert (await api.get(f"{POLICIES}/db")).json() == made


async def test_all_findings_come_at_once(api: httpx.AsyncClient) -> None:
    spec = {"minimum": {"cpu": "much", "memory": "-1"}, "colour": "red", "units": "three"}
    answer = await api.post(POLICIES, json=policy("db", spec=spec))
    assert status_of(answer) == (422, "Invalid")
    fields = {cause["field"] for cause in answer.json()["details"]["causes"]}
    assert {"spec.minimum.cpu", "spec.minimum.memory", "spec.colour", "spec.units"} <= fields


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"{", 400, id="half a brace"),
        pytest.param(b"\xff\xfe", 400, id="no text"),
        pytest.param(b'{"metadata": {"name": "\xff"}}', 400, id="no UTF-8"),
        pytest.param(b"[" * 100_000, 400, id="a deep hole"),
        pytest.param(b"null", 422, id="null"),
        pytest.param(b"[]", 422, id="a list"),
        pytest.param(b'{"kind": "QoSProfile", "metadata": {"name": "a"}, "spec": {}}', 422, id="another kind"),
        pytest.param(b'{"apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}}', 422, id="another version"),
    ],
)
async def test_a_bad_body_is_refused(api: httpx.AsyncClient, body: bytes, code: int) -> None:
    assert (await api.post(POLICIES, content=body, headers={"content-type": "application/json"})).status_code == code


@pytest.mark.parametrize("name", ["..", "../etc", "a/b", "UPPER", "", "a" * 300, "-a", "a b", "é"])
async def test_a_name_that_escapes_is_refused(api: httpx.AsyncClient, name: str) -> None:
    assert status_of(await api.post(POLICIES, json=policy(name))) == (422, "Invalid")


async def test_body_and_path_must_agree(api: httpx.AsyncClient) -> None:
    await create(api, "db")
    elsewhere = policy("db", metadata={"namespace": "other"})
    assert status_of(await api.post(POLICIES, json=elsewhere)) == (400, "BadRequest")
    assert status_of(await api.put(f"{POLICIES}/db", json=policy("web"))) == (400, "BadRequest")


async def test_a_large_body_is_refused(api: httpx.AsyncClient) -> None:
    wish = policy(metadata={"annotations": {"a": "x" * (1 << 20)}})
    assert status_of(await api.post(POLICIES, json=wish)) == (413, "RequestEntityTooLarge")


async def test_a_foreign_content_type_is_refused(api: httpx.AsyncClient) -> None:
    yaml = {"content-type": "application/yaml"}
    assert status_of(await api.post(POLICIES, content=b"a: b", headers=yaml)) == (415, "UnsupportedMediaType")
    await create(api, "db")
    strategic = {"content-type": "application/strategic-merge-patch+json"}
    assert (await api.patch(f"{POLICIES}/db", content="{}", headers=strategic)).status_code == 415


# -- change


async def test_a_replace_moves_generation_and_revision(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    changed = (await api.put(f"{POLICIES}/db", json=policy("db", spec={"units": 2}))).json()
    assert changed["metadata"]["generation"] == 2
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


async def test_a_stale_replace_conflicts(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    await api.put(f"{POLICIES}/db", json=policy("db", spec={"units": 2}))
    made["spec"]["units"] = 3
    assert status_of(await api.put(f"{POLICIES}/db", json=made)) == (409, "Conflict")


async def test_replacing_what_is_not_there_is_not_found(api: httpx.AsyncClient) -> None:
    assert status_of(await api.put(f"{POLICIES}/db", json=policy("db"))) == (404, "NotFound")


async def test_an_object_made_again_is_another(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    await api.delete(f"{POLICIES}/db")
    await create(api, "db")
    del made["metadata"]["resourceVersion"]
    assert status_of(await api.put(f"{POLICIES}/db", json=made)) == (409, "Conflict")


async def test_a_merge_patch_merges_and_removes(api: httpx.AsyncClient) -> None:
    await create(api, "db", app="db", tier="x")
    patch = b'{"metadata": {"labels": {"tier": null, "zone": "a"}}, "spec": {"minimum": {"memory": null}, "units": 3}}'
    changed = (await api.patch(f"{POLICIES}/db", content=patch, headers=MERGE)).json()
    assert changed["metadata"]["labels"] == {"app": "db", "zone": "a"}
    assert changed["spec"] == {"minimum": {"cpu": "500m"}, "units": 3}


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param('{"spec": {"units": -5}}', 422, id="a bad value"),
        pytest.param('{"spec": null}', 422, id="no spec left"),
        pytest.param("[]", 422, id="a list"),
        pytest.param("{", 400, id="no JSON"),
        pytest.param('{"metadata": {"name": "other"}}', 400, id="another name"),
        pytest.param('{"metadata": {"resourceVersion": "1"}}', 409, id="a stale revision"),
        pytest.param('{"metadata": {"uid": "1"}}', 409, id="another uid"),
    ],
)
async def test_a_bad_patch_changes_nothing(api: httpx.AsyncClient, patch: str, code: int) -> None:
    (made,) = await create(api, "db")
    assert (await api.patch(f"{POLICIES}/db", content=patch, headers=MERGE)).status_code == code
    assert (await api.get(f"{POLICIES}/db")).json() == made


async def test_status_and_spec_have_different_owners(api: httpx.AsyncClient) -> None:
    await create(api, "db")
    both = policy("db", spec={"units": 9}, status={"phase": "Active"})
    reported = (await api.put(f"{POLICIES}/db/status", json=both)).json()
    assert (reported["status"]["phase"], reported["spec"].get("units")) == ("Active", None)
    assert reported["metadata"]["generation"] == 1
    both["status"] = {"phase": "Degraded"}
    changed = (await api.put(f"{POLICIES}/db", json=both)).json()
    assert (changed["status"]["phase"], changed["spec"]["units"]) == ("Active", 9)


async def test_a_client_writes_its_own_part_of_a_nodes_status(api: httpx.AsyncClient) -> None:
    node = {"metadata": {"name": "n1"}}
    assert (await api.post(f"{BASE}/nodeqoses", json=node)).status_code == 201
    fields = node | {"status": {"node": {"armed": True, "workloads": 3}, "overcommit": {"cpu": "64"}}}
    shown = (await api.put(f"{BASE}/nodeqoses/n1/status", json=fields)).json()
    assert shown["status"] == {"node": {"armed": True, "workloads": 3}}


# -- delete


async def test_delete_answers_success_and_deletes(api: httpx.AsyncClient) -> None:
    (made,) = await create(api, "db")
    answer = (await api.delete(f"{POLICIES}/db")).json()
    assert (answer["status"], answer["details"]["uid"]) == ("Success", made["metadata"]["uid"])
    assert status_of(await api.delete(f"{POLICIES}/db")) == (404, "NotFound")


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_delete_heeds_preconditions(api: httpx.AsyncClient, field: str) -> None:
    (made,) = await create(api, "db")
    wrong = {"preconditions": {field: "1"}}
    assert status_of(await api.request("DELETE", f"{POLICIES}/db", json=wrong)) == (409, "Conflict")
    right = {"preconditions": {field: made["metadata"][field]}}
    assert (await api.request("DELETE", f"{POLICIES}/db", json=right)).status_code == 200


# -- list


async def listed(api: httpx.AsyncClient, path: str = POLICIES, **params: str) -> list[str]:
    answer = await api.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("app=web", ["a", "b"], id="equal"),
        pytest.param("app==web,zone=1", ["a"], id="both"),
        pytest.param("app!=web", ["c", "d"], id="not equal, or absent"),
        pytest.param("zone in (1, 2)", ["a", "b"], id="in"),
        pytest.param("zone notin (1)", ["b", "c", "d"], id="not in"),
        pytest.param("zone", ["a", "b"], id="exists"),
        pytest.param("!zone", ["c", "d"], id="does not exist"),
        pytest.param("", ["a", "b", "c", "d"], id="nothing said"),
    ],
)
async def test_labels_select(api: httpx.AsyncClient, selector: str, names: list[str]) -> None:
    await create(api, "a", app="web", zone="1")
    await create(api, "b", app="web", zone="2")
    await create(api, "c", app="db")
    await create(api, "d")
    assert await listed(api, labelSelector=selector) == names


@pytest.mark.parametrize("bad", ["a=b=c", "a in b", ",,", "a in (b", "=", "a,,b", "!!a"])
async def test_a_bad_selector_is_refused(api: httpx.AsyncClient, bad: str) -> None:
    assert status_of(await api.get(POLICIES, params={"labelSelector": bad})) == (422, "Invalid")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("metadata.name=b", ["b"], id="a name"),
        pytest.param("metadata.name!=b,metadata.namespace==default", ["a", "c"], id="not a name"),
        pytest.param("spec.units=3", ["c"], id="a field of the listing"),
        pytest.param("status.phase=Pending,spec.units=0", ["a", "b"], id="values that were never said"),
        pytest.param("spec.minimum.cpu!=500m", [], id="an amount"),
    ],
)
async def test_fields_select(api: httpx.AsyncClient, selector: str, names: list[str]) -> None:
    await create(api, "a", "b")
    await api.post(POLICIES, json=policy("c", spec={"units": 3}))
    assert await listed(api, fieldSelector=selector) == names


@pytest.mark.parametrize(
    "bad", ["spec.lending.mode=None", "metadata.name", "=", "metadata.name~b", "status.node.armed=1"]
)
async def test_fields_that_nobody_lists_are_refused(api: httpx.AsyncClient, bad: str) -> None:
    assert status_of(await api.get(POLICIES, params={"fieldSelector": bad})) == (422, "Invalid")


async def test_pages_cover_everything_once(api: httpx.AsyncClient) -> None:
    names = [f"p-{n:02}" for n in range(25)]
    await create(api, *names)
    seen, token, revisions = [], "", set()
    while True:
        page = (await api.get(POLICIES, params={"limit": "10", "continue": token})).json()
        seen += [item["metadata"]["name"] for item in page["items"]]
        revisions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"].get("continue", "")
        if not token:
            break
        assert page["metadata"]["remainingItemCount"] == 25 - len(seen)
    assert seen == names
    assert len(revisions) == 1
    assert (await api.get(POLICIES, params={"continue": "rubbish"})).status_code == 422


async def test_all_namespaces_are_listed_together(api: httpx.AsyncClient) -> None:
    await create(api, "here")
    await api.post(f"{BASE}/namespaces/other/minimalreservationpolicies", json=policy("there"))
    assert await listed(api, f"{BASE}/minimalreservationpolicies") == ["here", "there"]
    assert await listed(api) == ["here"]


# -- what is not there


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", f"{BASE}/nothings", 404),
        ("GET", f"{BASE}/namespaces/default/qosprofiles", 404),
        ("GET", f"{BASE}/minimalreservationpolicies/db", 404),
        ("GET", f"{POLICIES}/db/spec", 404),
        ("GET", f"{POLICIES}/db/status/more", 404),
        ("GET", f"{BASE}/namespaces/a/policyrevisions/x/status", 404),
        ("GET", f"{POLICIES}//", 404),
        ("PUT", POLICIES, 405),
        ("DELETE", POLICIES, 405),
        ("POST", f"{POLICIES}/db", 405),
        ("POST", f"{BASE}/minimalreservationpolicies", 405),
        ("DELETE", f"{POLICIES}/db/status", 405),
        ("POST", "/healthz", 405),
        ("POST", f"{BASE}/namespaces/default/workloads", 405),
        ("PUT", f"{BASE}/nodedocuments/n1", 405),
    ],
)
async def test_there_is_no_such_thing(api: httpx.AsyncClient, method: str, path: str, code: int) -> None:
    assert status_of(await api.request(method, path))[0] == code


# -- around the objects


async def test_discovery_names_every_kind(api: httpx.AsyncClient) -> None:
    groups = (await api.get("/apis")).json()["groups"]
    assert [group["name"] for group in groups] == ["j10ce.io"]
    resources = {entry["name"]: entry for entry in (await api.get(BASE)).json()["resources"]}
    assert resources["minimalreservationpolicies"]["shortNames"] == ["mrp"]
    assert "nodeqoses/status" in resources
    assert resources["workloads"]["verbs"] == ["get", "list"]


async def test_requests_are_counted(api: httpx.AsyncClient) -> None:
    await api.get("/nothing")
    text = (await api.get("/metrics")).text
    assert 'j10ce_manager_requests_total{code="404",method="GET"} 1.0' in text
