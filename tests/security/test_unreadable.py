"""What a release cannot read, over the API: it is an administrator's to delete, and nobody else's."""

from __future__ import annotations

import sqlite3

import httpx2 as httpx

from tests.security.plane import BASE, Plane, obj

OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"
PATH = f"{BASE}/qosprofiles/web"


def spoilt(plane: Plane) -> None:
    """A profile as the next release writes it, below a manager that is not running."""
    with plane.manager() as manager, manager.client("editor") as api:
        made = api.post(f"{BASE}/qosprofiles", json=obj("QoSProfile", "web", tier="standard"))
        assert made.status_code == 201, made.text
    sql = sqlite3.connect(plane.folder / "objects.db")
    sql.execute("UPDATE objects SET data = CAST(replace(data, 'standard', 'golden') AS BLOB) WHERE name = 'web'")
    sql.commit()
    sql.close()


def delete(api: httpx.Client, body: dict[str, object] | None = None, **query: str) -> httpx.Response:
    return api.request("DELETE", PATH, params=query, json=body)


def test_what_cannot_be_read_is_deleted_by_an_administrator_who_says_so(plane: Plane) -> None:
    spoilt(plane)
    with plane.manager() as manager, manager.client("editor") as editor, manager.client("admin") as admin:
        refused = delete(admin)
        assert (refused.status_code, "--unreadable" in refused.json()["message"]) == (500, True)
        assert delete(editor, {OPTION: True}).status_code == 403
        assert delete(admin, {OPTION: True, "preconditions": {"uid": "u"}}).status_code == 422
        assert delete(admin, dryRun="All", **{OPTION: "true"}).status_code == 500
        assert admin.get(PATH).status_code == 500, "nothing of this has deleted it"
        assert "deleted" in manager.admin("delete", "qosprofile", "web", "--unreadable")
        assert admin.get(PATH).status_code == 404
        assert editor.post(f"{BASE}/qosprofiles", json=obj("QoSProfile", "web", tier="standard")).status_code == 201
    audited = [
        (line["who"], line.get("code")) for line in plane.audited() if (line["verb"], line["name"]) == ("delete", "web")
    ]
    assert audited[-2:] == [("admin", None), ("admin", 200)]
    with plane.manager() as manager, manager.client("admin") as admin:
        assert admin.get(PATH).json()["spec"]["tier"] == "standard"
