"""The whole plane: revocation on every manager, watches that end, limits, the audit log, and no secret anywhere."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from j10ce.cli.host.bundle import redact
from j10ce.manager.fairness import rate_limits
from tests.etcd.cluster import running
from tests.security.plane import BASE, ENV, Manager, Plane, obj

pytestmark = pytest.mark.lab

PROFILES = f"{BASE}/qosprofiles"


@pytest.fixture(scope="module")
def two(foundation: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Manager, Manager]]:
    """Two managers that share an etcd."""
    folder = tmp_path_factory.mktemp("two")
    plane = Plane(foundation, folder)
    with running(folder / "etcd", 1) as cluster:
        store = f"etcd://{cluster.endpoints[0]}"
        with plane.manager(store=store) as one, plane.manager(store=store) as other:
            yield one, other


def until(client: httpx.Client, code: int) -> None:
    while client.get(PROFILES).status_code != code:
        pass


def test_a_token_of_one_manager_counts_on_all_and_dies_on_all(two: tuple[Manager, Manager]) -> None:
    one, other = two
    token = one.admin("token", "create", "carol", "--role", "viewer", "--for", "1h")
    with one.client(token) as here, other.client(token) as there:
        until(here, 200)
        until(there, 200)
        one.admin("token", "revoke", "carol")
        until(here, 401)
        until(there, 401)


def test_an_open_watch_tells_nothing_after_its_token_has_died(two: tuple[Manager, Manager]) -> None:
    one, other = two
    token = one.admin("token", "create", "dora", "--role", "viewer", "--for", "1h")
    with other.client(token) as client, one.client("admin") as admin:
        until(client, 200)
        with client.stream("GET", PROFILES, params={"watch": "1"}) as watch:
            lines = watch.iter_lines()
            while json.loads(next(lines))["object"]["metadata"]["name"] != "system":
                pass
            assert admin.delete(f"{BASE}/credentials/dora").status_code == 200
            with other.client(token) as again:
                until(again, 401)
            assert admin.post(PROFILES, json=obj("QoSProfile", "hidden", tier="standard")).status_code == 201
            rest = [json.loads(line)["object"]["metadata"]["name"] for line in lines]
    assert "hidden" not in rest


def test_a_role_that_is_changed_counts_at_once(two: tuple[Manager, Manager]) -> None:
    one, other = two
    token = one.admin("token", "create", "erin", "--role", "editor", "--for", "1h")
    with other.client(token) as client, one.client("admin") as admin:
        until(client, 200)
        merge = {"content-type": "application/merge-patch+json"}
        admin.patch(f"{BASE}/credentials/erin", json={"spec": {"role": "viewer"}}, headers=merge)
        while client.post(PROFILES, json=obj("QoSProfile", "e", tier="odd")).status_code != 403:
            pass
        assert client.get(PROFILES).status_code == 200


@pytest.mark.slow
async def test_whoever_asks_too_often_hears_when_to_come_back(shared: Manager) -> None:
    """Everyone else, and the administrator, are served meanwhile."""
    token = shared.plane.tokens["viewer"]
    many = int(rate_limits.PEOPLE.requests_burst) * 3
    async with httpx.AsyncClient(base_url=shared.server, verify=shared.plane.trust(), timeout=60) as client:
        headers = {"authorization": f"Bearer {token}"}
        answers = await asyncio.gather(*(client.get("/apis", headers=headers) for _ in range(many)))
        codes = {a.status_code for a in answers}
        assert codes <= {200, 429}
        assert [a.status_code for a in answers].count(200) >= rate_limits.PEOPLE.requests_burst
        refused = next((a for a in answers if a.status_code == 429), None)
        if refused is not None:  # a machine that answers slowly enough never has to refuse
            assert refused.json()["reason"] == "TooManyRequests"
            assert int(refused.headers["retry-after"]) >= 1
        for role in ("editor", "admin"):
            answer = await client.get("/apis", headers={"authorization": f"Bearer {shared.plane.tokens[role]}"})
            assert answer.status_code == 200


def test_strangers_are_slowed_down_and_those_with_a_token_are_not(plane: Plane) -> None:
    with plane.manager() as manager, manager.client("j10ce.viewer.guess") as stranger:
        assert stranger.get(PROFILES).status_code == 401
        assert any(stranger.get(PROFILES).status_code == 429 for _ in range(int(rate_limits.STRANGERS_BURST) * 20))
        with manager.client("viewer") as known:
            assert known.get(PROFILES).status_code == 200


def test_the_audit_log_tells_the_whole_story(plane: Plane) -> None:
    with plane.manager() as manager:
        with manager.client("editor") as editor, manager.client("viewer") as viewer, manager.client() as nobody:
            made = obj("QoSProfile", "mine", tier="standard")
            assert editor.post(PROFILES, json=made, params={"dryRun": "All"}).status_code == 201
            assert editor.post(PROFILES, json=made).status_code == 201
            made["spec"] = {"tier": "standard", "priority": 5}
            assert editor.put(f"{PROFILES}/mine", json=made).status_code == 200
            assert editor.post(PROFILES, json=made).status_code == 409
            assert viewer.delete(f"{PROFILES}/mine").status_code == 403
            assert viewer.get(f"{PROFILES}/mine").status_code == 200
            assert nobody.get(PROFILES).status_code == 401
            assert editor.delete(f"{PROFILES}/mine").status_code == 200
        ended = [line for line in plane.audited() if line.get("stage") != "intent" and line.get("who") != "system"]
        lines = [line for line in ended if line.get("name") == "mine" or line["code"] == 401]
    assert stat.S_IMODE(plane.audit.stat().st_mode) == 0o600
    shown = [(line.get("who"), line.get("verb"), line["code"], line.get("dryRun")) for line in lines]
    assert shown == [
        ("editor", "create", 201, True),
        ("editor", "create", 201, None),
        ("editor", "update", 200, None),
        ("editor", "create", 409, None),
        ("viewer", "delete", 403, None),
        (None, None, 401, None),
        ("editor", "delete", 200, None),
    ]
    assert all(line["source"] == "127.0.0.1" and line["when"] for line in lines)
    assert (lines[1]["before"], lines[1]["after"]) == (None, {"spec": {"tier": "standard"}})
    assert lines[2]["after"] == {"spec": {"priority": 5}}
    assert "may" in str(lines[4]["error"])
    assert lines[5]["path"] == PROFILES
    assert lines[6]["after"] is None


def test_a_full_disk_under_the_audit_log_is_reported_and_stops_whatever_nobody_would_hear_of(plane: Plane) -> None:
    with plane.manager("--audit-log", "/dev/full") as manager, manager.client("editor") as editor:
        assert editor.post(PROFILES, json=obj("QoSProfile", "mine", tier="standard")).status_code == 503
        assert editor.get(f"{PROFILES}/mine").status_code == 404
        counted = re.search(r"^j10ce_manager_audit_lost (\S+)$", editor.get("/metrics").text, re.MULTILINE)
    assert counted
    assert float(counted[1]) >= 1
    assert "audit.fail" in (plane.folder / "manager.log").read_text()


def test_no_secret_is_written_anywhere_but_to_its_owner(plane: Plane) -> None:
    with plane.manager() as manager:
        issued = [
            manager.admin("token", "create", "rack7", "--role", "bootstrap"),
            manager.admin("token", "create", "frank", "--role", "viewer"),
        ]
        with manager.client(issued[0]) as bootstrap:
            while (answer := bootstrap.post(f"{BASE}/nodecredentials", json={"node": "n7"})).status_code == 401:
                pass
            issued.append(answer.json()["token"])
        with manager.client(issued[2]) as node:
            issued.append(node.post(f"{BASE}/nodecredentials", json={"node": "n7"}).json()["token"])
        with manager.client("viewer") as viewer:
            viewer.get(f"{BASE}/{issued[1]}", headers={"x-token": issued[1]})
        with manager.client("admin") as admin:
            everything = [admin.get(f"{BASE}/credentials").text, admin.get("/metrics").text]
        bundle = plane.folder / "bundle.tar.gz"
        manager.admin("bundle", "--output", str(bundle))
    files = [plane.audit, plane.folder / "manager.log", *plane.folder.glob("objects.db*")]
    everything += [path.read_bytes().decode("latin-1") for path in files]
    with tarfile.open(bundle) as archive:
        packed = [archive.extractfile(member) for member in archive.getmembers()]
        everything += [file.read().decode("latin-1") for file in packed if file]
    for token in (*issued, *plane.tokens.values()):
        assert not [text for text in everything if token.rpartition(".")[2] in text]


def test_a_token_that_got_into_a_log_does_not_get_into_a_bundle(shared: Manager) -> None:
    token = shared.plane.tokens["admin"]
    assert token.rpartition(".")[2] not in redact(f"GET /{token} 404")


def test_the_log_tells_no_hashes(shared: Manager) -> None:
    hashes = re.findall("sha256:[0-9a-f]{64}", shared.plane.auth.read_text())
    assert len(hashes) == 5
    assert not any(h in (shared.plane.folder / "manager.log").read_text() for h in hashes)


def test_a_manager_that_is_asked_to_reopen_its_log_does(plane: Plane) -> None:
    with plane.manager() as manager, manager.client("editor") as editor:
        for name in ("a", "b"):
            editor.post(PROFILES, json=obj("QoSProfile", name, tier="standard"))
            plane.audit.rename(plane.folder / f"audit.{name}")
            manager.hang_up()
        editor.post(PROFILES, json=obj("QoSProfile", "c", tier="standard"))
    files = [*(plane.folder / f"audit.{name}" for name in ("a", "b")), plane.audit]
    created = [
        [line for line in map(json.loads, file.read_text().splitlines()) if "POST" in line.values()] for file in files
    ]
    assert [[line["name"] for line in lines] for lines in created] == [["a"], ["b"], ["c"]]


def test_a_token_file_alone_still_makes_an_administrator(plane: Plane) -> None:
    """As `up` does it, without any set-up."""
    argv = ["--store", "memory:", "--token-file", f"{plane.folder}/token", "--listen", "127.0.0.1:0"]
    argv += ["--kubeconfig", f"{plane.folder}/kubeconfig"]
    with subprocess.Popen(
        [sys.executable, "-m", "j10ce.manager.main", *argv], env=ENV, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr is not None
            while b"manager.start" not in process.stderr.readline():
                pass
            body = json.loads((plane.folder / "kubeconfig").read_text())
            headers = {"authorization": f"Bearer {body['users'][0]['user']['token']}"}
            with httpx.Client(base_url=body["clusters"][0]["cluster"]["server"], headers=headers) as owner:
                assert owner.get(f"{BASE}/credentials").status_code == 200
        finally:
            process.kill()
