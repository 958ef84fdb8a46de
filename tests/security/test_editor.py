"""What an editor, or whoever has an editor's token, tries: to change what is theirs to change, and nothing else."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import tracemalloc
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from j10ce.errors import Malformed
from j10ce.model.schema import refuse_repeated
from tests.security.plane import BASE, Manager, Plane, command, hold, obj

HOLDS = f"{BASE}/namespaces/default/holds"
PROFILES = f"{BASE}/qosprofiles"
APPLY = {"content-type": "application/apply-patch+yaml"}
JSON = {"content-type": "application/json"}
MERGE = {"content-type": "application/merge-patch+json"}
PATCH = {"content-type": "application/json-patch+json"}


@pytest.fixture(scope="module")
def editor(shared: Manager) -> Iterator[httpx.Client]:
    with shared.client("editor") as client:
        yield client


def with_owners(made: dict[str, Any], levels: int) -> bytes:
    """As text: what encodes it here has limits of its own."""
    fields = [{"manager": "evil", "operation": "Apply", "fieldsV1": {"f:a": {}}}]
    whole = {**made, "metadata": {**made["metadata"], "managedFields": fields}}
    return deeper(json.dumps(whole, separators=(",", ":")).encode(), levels)


def deeper(data: bytes, levels: int) -> bytes:
    return bytes(data).replace(b'{"f:a":{}}', b'{"f:a":' * levels + b"{}" + b"}" * levels)


def test_a_value_is_repeated_by_its_first_characters(editor: httpx.Client) -> None:
    answer = editor.post(HOLDS, json={**hold("long"), "spec": {**hold("long")["spec"], "target": "N" + "y" * 900_000}})  # type: ignore[dict-item]
    assert answer.status_code == 422
    assert "spec.target" in answer.text
    assert "y" * 201 not in answer.text
    assert len(answer.content) < 4_000


@pytest.mark.parametrize("wanted", ["uid", "resourceVersion"])
@pytest.mark.parametrize("length", [800_000, 900])
def test_what_a_delete_insists_on_is_reported_in_few_words(editor: httpx.Client, wanted: str, length: int) -> None:
    body = {"preconditions": {wanted: "9" * length}}
    answer = editor.request("DELETE", f"{PROFILES}/burstable", json=body)
    assert answer.status_code == (422 if length > 1024 else 409)
    assert len(answer.content) < 2_000
    assert "9" * 201 not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/openapi/" + "d" * 10_000,
        f"{PROFILES}?labelSelector=" + "*" * 1_000,
        f"{PROFILES}?resourceVersion=" + "9" * 900,
    ],
)
def test_a_question_is_repeated_by_its_first_characters(editor: httpx.Client, path: str) -> None:
    answer = editor.get(path)
    assert answer.status_code in (404, 422, 504)
    assert path[-201:] not in answer.text


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"tier": "y" * 100_000}, id="a choice"),
        pytest.param({"y" * 100_000: 1}, id="an unknown field"),
        pytest.param({"tier": "odd - at `$" + ".a" * 100_000}, id="a choice that looks like a path"),
        pytest.param({"x - at `$" + ".a" * 100_000: 1}, id="a field that looks like a path"),
        pytest.param({"tier": "standard", "selector": {"matchLabels": {"y" * 100_000: "v"}}}, id="a label"),
        pytest.param({"tier": "standard", "cpu": {"burst": "y" * 100_000}}, id="an amount"),
    ],
)
def test_any_mistake_is_reported_in_few_words(editor: httpx.Client, spec: dict[str, Any]) -> None:
    answer = editor.post(PROFILES, json=obj("QoSProfile", "wrong", **spec))
    assert answer.status_code == 422
    assert len(answer.content) < 6_000


def test_a_deep_object_leaves_its_name_to_others(editor: httpx.Client, shared: Manager) -> None:
    """Nobody's key is wedged: neither by a create nor by a replace that is refused."""
    assert (
        editor.post(
            PROFILES, content=with_owners(obj("QoSProfile", "squat", tier="standard"), 980), headers=JSON
        ).status_code
        == 400
    )
    assert editor.post(HOLDS, json=hold("kept")).status_code == 201
    assert editor.put(f"{HOLDS}/kept", content=with_owners(hold("kept"), 978), headers=JSON).status_code == 400
    with shared.client("admin") as admin:
        assert admin.post(PROFILES, json=obj("QoSProfile", "squat", tier="standard")).status_code == 201
        assert admin.patch(f"{HOLDS}/kept", json={"spec": {"why": "mine"}}, headers=MERGE).status_code == 200
        assert admin.delete(f"{HOLDS}/kept").status_code == 200


def test_sixty_four_levels_are_the_limit(editor: httpx.Client) -> None:
    """An object, its metadata, the list, the entry and the innermost fields are five of them."""
    made = obj("QoSProfile", "levels", tier="standard")
    assert editor.post(PROFILES, content=with_owners(made, 60), headers=JSON).status_code == 400
    assert editor.post(PROFILES, content=with_owners(made, 59), headers=JSON).status_code == 201
    assert json.loads(editor.get(f"{PROFILES}/levels").content)["metadata"]["managedFields"]


def test_a_patch_cannot_nest_deeper_than_an_object(editor: httpx.Client) -> None:
    """Each copy doubles the depth."""
    assert editor.post(PROFILES, json=obj("QoSProfile", "copied", tier="standard")).status_code == 201
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/x", "value": {"x": {}}}]
    path = "/x/x"
    for _ in range(6):
        steps.append({"op": "copy", "from": "/x", "path": f"{path}/x"})
        path += "/x" * (path.count("/"))
    answer = editor.patch(f"{PROFILES}/copied", json=steps, headers=PATCH)
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 4_000


@pytest.mark.parametrize("op", ["add", "remove", "replace", "test", "move", "copy"])
def test_a_pointer_that_leads_deeper_than_any_object_is_not_followed(editor: httpx.Client, op: str) -> None:
    step: dict[str, Any] = {"op": op, "path": "/x" * 400_000, "from": "/y" * 65, "value": 0}
    answer = editor.patch(f"{PROFILES}/burstable", json=[step], headers=PATCH)
    assert (answer.status_code, "leads deeper than 64 levels" in answer.text) == (422, True)
    assert len(answer.content) < 4_000


MANY = "[" + "[]," * 200_000 + "1]"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        pytest.param("POST", "", f'{{"x": {MANY}}}', JSON, id="create"),
        pytest.param("PUT", "/ls", f'{{"x": {MANY}}}', JSON, id="replace"),
        pytest.param("PATCH", "/ls", f'{{"x": {MANY}}}', MERGE, id="merge patch"),
        pytest.param("PATCH", "/ls", f'[{{"op": "add", "path": "/x", "value": {MANY}}}]', PATCH, id="JSON patch"),
        pytest.param("DELETE", "/ls", f'{{"x": {MANY}}}', JSON, id="delete"),
    ],
)
def test_a_body_of_very_many_values_is_not_looked_through(
    editor: httpx.Client, method: str, path: str, body: str, headers: dict[str, str]
) -> None:
    """One megabyte of them kept the event loop from everybody else for seconds."""
    answer = editor.request(method, PROFILES + path, content=body, headers=headers)
    assert (answer.status_code, "too many values; send at most 16384" in answer.text) == (400, True), answer.text


def test_an_object_does_not_come_to_very_many_values_by_patches(editor: httpx.Client) -> None:
    """Each patch is small, and copies what is there; every later change would look at all of it."""
    owners = [{"manager": "m", "operation": "Apply", "fieldsV1": {f"f:{n}": {} for n in range(10_000)}}]
    made = obj("QoSProfile", "crowd", tier="standard")
    made["metadata"]["managedFields"] = owners
    assert editor.post(PROFILES, json=made).status_code == 201
    twice = [{"op": "copy", "from": "/metadata/managedFields/0", "path": "/metadata/managedFields/1"}]
    answer = editor.patch(f"{PROFILES}/crowd", json=twice, headers=PATCH)
    assert (answer.status_code, "too many values; send at most 16384" in answer.text) == (400, True), answer.text


def test_keys_that_stand_twice_below_a_long_one_take_the_room_of_the_body() -> None:
    """Each had the path of all that it stands below: 260 kB became gigabytes."""
    body = b'{"\\u0061' + b"x" * 50_000 + b'":{' + b'"a":0,' * 8_000 + b'"a":0}}'
    tracemalloc.start()
    with pytest.raises(Malformed) as refused:
        refuse_repeated(body, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * len(body)
    assert len(refused.value.findings) == 50
    assert all(len(finding.path) <= 200 for finding in refused.value.findings)


@pytest.mark.parametrize("inside", ["[" + "0," * 131_072 + "0]", "{" + '"a":0,' * 131_072 + '"a":0}'])
def test_a_body_of_very_many_values_is_not_searched_for_keys_that_stand_twice(
    editor: httpx.Client, inside: str
) -> None:
    body = '{"\\u0061":' + inside + "}"
    with pytest.raises(Malformed, match="too many values"):
        refuse_repeated(body, None)
    answer = editor.patch(f"{PROFILES}/burstable", content=body, headers=MERGE)
    assert (answer.status_code, "too many values; send at most 16384" in answer.text) == (400, True)


def test_keys_that_stand_twice_are_refused_as_in_kubernetes(editor: httpx.Client) -> None:
    body = json.dumps(obj("QoSProfile", "twice", tier="standard"))
    double = body.replace('"tier": "standard"', '"tier": "standard", "tier": "besteffort"')
    sent = {"content-type": "application/json"}
    answer = editor.post(PROFILES, content=double, headers=sent)
    assert (answer.status_code, "spec.tier: duplicate field" in answer.text) == (400, True)
    assert editor.get(f"{PROFILES}/twice").status_code == 404
    warned = editor.post(f"{PROFILES}?fieldValidation=Warn", content=double, headers=sent)
    assert (warned.status_code, warned.headers["warning"]) == (201, '299 - "duplicate field \\"spec.tier\\""')
    assert editor.post(f"{PROFILES}?fieldValidation=Ignore", content=double, headers=sent).status_code == 409


TWICE = '{"tier": "standard", "tier": "besteffort"}'


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        pytest.param(
            "PATCH", f"{PROFILES}/said-twice?fieldManager=x&fieldValidation=Strict",
            '{"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "spec": ' + TWICE + "}", APPLY, id="apply",
        ),
        pytest.param(
            "PATCH", f"{PROFILES}/burstable", '[{"op": "add", "path": "/spec", "value": ' + TWICE + "}]", PATCH,
            id="JSON patch",
        ),
        pytest.param("PATCH", f"{PROFILES}/burstable", '{"spec": ' + TWICE + "}", MERGE, id="merge patch"),
        pytest.param("DELETE", f"{PROFILES}/burstable", '{"dryRun": [], "dryRun": ["All"]}', JSON, id="delete"),
        pytest.param(
            "POST", f"{BASE}/placements?dryRun=All",
            '{"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": {"name": "a", "name": "b"}}', JSON,
            id="placement",
        ),
        pytest.param("POST", f"{BASE}/nodecredentials", '{"node": "dupa", "node": "dupb"}', JSON, id="enrolment"),
    ],
)  # fmt: skip
def test_a_key_that_stands_twice_is_refused_whatever_the_request(
    shared: Manager, method: str, path: str, body: str, headers: dict[str, str]
) -> None:
    with shared.client("admin") as admin:
        answer = admin.request(method, path, content=body, headers=headers)
        assert (answer.status_code, "duplicate field" in answer.text) == (400, True), answer.text
        assert admin.get(f"{PROFILES}/said-twice").status_code == 404
        assert admin.get(f"{PROFILES}/burstable").json()["spec"]["tier"] == "standard"


def test_a_warning_with_control_characters_does_not_break_the_answer(editor: httpx.Client) -> None:
    made = obj("QoSProfile", "esc", tier="standard", **{"a\x1b[2Jb": 1})
    answer = editor.post(f"{PROFILES}?fieldValidation=Warn", json=made)
    assert answer.status_code == 201
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.a?[2Jb\\""'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"a: b\n" + b"#" * 70_000, "at most 65536", id="large"),
        pytest.param(b"{a: " * 70 + b"1" + b"}" * 70, "nested too deeply", id="deep"),
        pytest.param(b"a: &x 1\nb: *x\n", "aliases", id="aliases"),
        pytest.param(b"kind: QoSProfile\nkind: Hold\n", "duplicate", id="a key twice"),
    ],
)
def test_yaml_is_bounded(editor: httpx.Client, body: bytes, problem: str) -> None:
    answer = editor.patch(f"{PROFILES}/y?fieldManager=me", content=body, headers=APPLY)
    assert (answer.status_code, problem in answer.text) == (400, True), answer.text


def test_yaml_knows_no_numbers_of_base_sixty(editor: httpx.Client) -> None:
    body = (
        b"apiVersion: j10ce.io/v1alpha1\nkind: QoSProfile\nmetadata: {annotations: {a: 1:30}}\nspec: {tier: standard}"
    )
    answer = editor.patch(f"{PROFILES}/sixty?fieldManager=me", content=body, headers=APPLY)
    assert (answer.status_code, answer.json()["metadata"]["annotations"]) == (201, {"a": "1:30"})


def test_a_watch_is_one_however_it_is_spelled(plane: Plane) -> None:
    with plane.manager() as manager, manager.client("editor") as client, manager.client("admin") as admin:
        with client.stream("GET", f"{PROFILES}?w%61tch=1&resourceVersion=0") as watch:
            lines = watch.iter_lines()
            next(lines)
            text = admin.get("/metrics").text
    assert re.search(r"^j10ce_manager_watchers 1\.0$", text, re.MULTILINE)


def test_a_backup_reads_whatever_was_stored(plane: Plane) -> None:
    """An earlier release took nearly a thousand levels."""
    with plane.manager() as manager, manager.client("editor") as client:
        assert (
            client.post(
                PROFILES, content=with_owners(obj("QoSProfile", "old", tier="standard"), 10), headers=JSON
            ).status_code
            == 201
        )
    file = plane.folder / "objects.db"
    with sqlite3.connect(file) as sql:
        for row, data in list(sql.execute("SELECT revision, data FROM changes")):
            sql.execute("UPDATE changes SET data = ? WHERE revision = ?", (deeper(data, 960), row))
        ((data,),) = sql.execute("SELECT data FROM objects WHERE name = 'old'")
        sql.execute("UPDATE objects SET data = ? WHERE name = 'old'", (deeper(data, 960),))
    sql.close()
    out = plane.folder / "backup"
    command("backup", "--store", f"sqlite://{file}", str(out))
    assert b'"old"' in out.read_bytes()


@pytest.mark.parametrize("revision", ["abc", "", "-1", "٣", "9" * 1_100])
def test_a_token_to_go_on_with_that_was_made_up_is_refused(editor: httpx.Client, revision: str) -> None:
    made_up = base64.urlsafe_b64encode(json.dumps([revision, ["QoSProfile", "", "a"]]).encode()).decode()
    answer = editor.get(PROFILES, params={"resourceVersion": "5", "continue": made_up})
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "continue")


def test_a_field_selector_of_many_terms_is_refused(editor: httpx.Client) -> None:
    """Each is looked at for every object."""
    many = ",".join(f"metadata.name!=a{n}" for n in range(9))
    answer = editor.get(PROFILES, params={"fieldSelector": many})
    assert (answer.status_code, "9 terms; write at most 8" in answer.text) == (422, True)
    assert editor.get(PROFILES, params={"fieldSelector": many.rpartition(",")[0]}).status_code == 200


def test_terms_that_stand_twice_count_once(editor: httpx.Client) -> None:
    answer = editor.get(PROFILES, params={"fieldSelector": ",".join(["metadata.name=ls"] * 50)})
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["ls"]


def test_an_object_does_not_grow_beyond_its_size_by_patches(editor: httpx.Client) -> None:
    """Each patch is small, and copies what is there."""
    values = [f"v{n:04}" + "x" * 55 for n in range(1_000)]
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    made = obj("QoSProfile", "grows", tier="standard", selector=selector)
    made["metadata"]["annotations"] = {"a": "x" * 90_000}
    assert editor.post(PROFILES, json=made).status_code == 201
    expressions = "/spec/selector/matchExpressions"
    copies = [{"op": "copy", "from": f"{expressions}/0", "path": f"{expressions}/-"}] * 5
    reply = [editor.patch(f"{PROFILES}/grows", json=copies, headers=PATCH) for _ in range(3)]
    assert [answer.status_code for answer in reply] == [200, 200, 422]
    assert "at most 1048576 are kept" in reply[-1].text
    assert editor.patch(f"{PROFILES}/grows", json=copies[:4], headers=PATCH).status_code == 200
    more = {"metadata": {"annotations": {"b": "x" * 100_000}}}
    assert editor.patch(f"{PROFILES}/grows", json=more, headers=MERGE).status_code == 422
    assert len(editor.get(f"{PROFILES}/grows").content) <= 1 << 20
    assert editor.delete(f"{PROFILES}/grows").status_code == 200


POLICIES = f"{BASE}/namespaces/payments/minimalreservationpolicies"
PLACEMENTS = f"{BASE}/namespaces/payments/placements"
CPU = {"cpu": "500m"}
LABELLED = {"metadata": {"labels": {"j10ce.io/placement": "victim"}}}


def test_a_label_does_not_make_a_placement_of_another_s_policy(editor: httpx.Client, shared: Manager) -> None:
    """Else whoever places a workload of that name takes it back."""
    victim = obj("MinimalReservationPolicy", "placement-victim", selector={"matchLabels": {"app": "db"}}, minimum=CPU)
    with shared.client("admin") as admin:
        assert admin.post(POLICIES, json=victim).status_code == 201
        assert editor.patch(f"{POLICIES}/placement-victim", json=LABELLED, headers=MERGE).status_code == 200
        answer = editor.post(PLACEMENTS, json=obj("Workload", "victim", minimum=CPU))
        assert (answer.status_code, "is no placement; rename the workload" in answer.text) == (409, True)
        assert admin.delete(f"{POLICIES}/placement-victim").status_code == 200, "it is still there"


def test_what_placing_takes_back_is_in_the_audit_log(editor: httpx.Client, shared: Manager) -> None:
    alone = {"matchLabels": {"j10ce.io/workload": "moved"}}
    gone = {"matchLabels": {"kubernetes.io/hostname": "n-gone"}}
    old = obj("MinimalReservationPolicy", "placement-moved", selector=alone, nodeSelector=gone, minimum=CPU, ttl="1h")
    with shared.client("admin") as admin:
        made = {**old, "metadata": {"name": "placement-moved", "labels": {"j10ce.io/placement": "moved"}}}
        assert admin.post(POLICIES, json=made).status_code == 201
        assert editor.post(PLACEMENTS, json=obj("Workload", "moved", minimum=CPU)).status_code == 409, "no node fits"
        assert admin.get(f"{POLICIES}/placement-moved").status_code == 404
    deleted = [
        line for line in shared.plane.audited() if line["verb"] == "delete" and line.get("name") == "placement-moved"
    ]
    assert [(line["who"], line["kind"], line["stage"]) for line in deleted] == [
        ("editor", "MinimalReservationPolicy", "intent"),
        ("editor", "MinimalReservationPolicy", "outcome"),
    ]
    assert deleted[1]["before"]["spec"]["ttl"] == "1h"  # type: ignore[index]


def test_what_is_orphaned_beside_a_delete_is_in_the_audit_log(editor: httpx.Client, shared: Manager) -> None:
    owner = editor.post(PROFILES, json=obj("QoSProfile", "owner", tier="standard")).json()["metadata"]
    reference = {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "name": "owner", "uid": owner["uid"]}
    owned = obj("QoSProfile", "owned", tier="standard")
    owned["metadata"] = {"name": "owned", "ownerReferences": [reference]}
    assert editor.post(PROFILES, json=owned).status_code == 201
    assert editor.delete(f"{PROFILES}/owner", params={"propagationPolicy": "Orphan"}).status_code == 200
    lines = [line for line in shared.plane.audited() if line.get("name") == "owned" and line["verb"] == "update"]
    assert [(line["who"], line["stage"]) for line in lines] == [("editor", "intent"), ("editor", "outcome")]
    assert editor.delete(f"{PROFILES}/owned").status_code == 200


def test_an_apply_that_conflicts_in_very_many_fields_hears_a_few(editor: httpx.Client) -> None:
    made = obj("QoSProfile", "contested", tier="standard")
    for manager, value, code in (("first", "a", 201), ("second", "b", 409)):
        labels = {f"{'l' * 55}{n}": value for n in range(1_000)}
        body = {**made, "metadata": {"name": "contested", "labels": labels}}
        answer = editor.patch(f"{PROFILES}/contested?fieldManager={manager}", content=json.dumps(body), headers=APPLY)
        assert answer.status_code == code
    causes = answer.json()["details"]["causes"]
    assert (len(causes), causes[-1]["message"]) == (51, "and 950 more")
    assert "Apply failed with 1000 conflicts" in answer.json()["message"]
    assert len(answer.content) < 50_000
