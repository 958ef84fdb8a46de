"""What an editor tries to reach that is of whole machines: a NodeStrategy is an administrator's, by whatever way."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.documents import size
from tests.manager.assembled import BASE, Manager
from tests.manager.conftest import api as api
from tests.manager.conftest import manager as manager
from tests.security.plane import hold, obj
from tests.security.shares.test_documents import written
from tests.security.shares.test_shares import enrolled

STRATEGIES, HOLDS = f"{BASE}/nodestrategies", f"{BASE}/namespaces/j10ce-system/holds"
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
FREE = {"target": "node", "knobs": ["vm.min_free_kbytes"]}
SETS = [
    pytest.param({**FREE, "value": "10485760"}, id="all memory free"),
    pytest.param({"target": "node", "knobs": ["sched.features[GENTLE]"], "value": "0"}, id="the scheduler"),
    pytest.param({"target": "resctrl/system", "knobs": ["resctrl.mb[0]"], "value": "10"}, id="memory bandwidth"),
]


@pytest.mark.parametrize("more", SETS)
async def test_an_editor_sets_nothing_of_whole_machines_by_a_hold(
    manager: Manager, api: httpx.AsyncClient, more: dict[str, Any]
) -> None:
    said = f"may not hold a value of {more['target']}, which is of whole machines; as with NodeStrategies, admin may"
    body, frozen = hold("h", **more), hold("h", **{k: v for k, v in more.items() if k != "value"})
    async with await enrolled(manager, "eve", "editor") as eve:
        applied = await eve.patch(f"{HOLDS}/h?fieldManager=eve", json=body, headers=APPLY)
        assert (applied.status_code, said in applied.text) == (403, True)
        refused = await eve.post(HOLDS, json=body)
        assert (refused.status_code, said in refused.text) == (403, True)
        assert (await eve.post(HOLDS, json=frozen)).status_code == 201, "as it is"
        patched = await eve.patch(f"{HOLDS}/h", json={"spec": {"value": more["value"]}}, headers=MERGE)
        assert (patched.status_code, said in patched.text) == (403, True)
    assert (await api.get(f"{HOLDS}/h")).json()["spec"].get("value") is None
    assert (await api.post(HOLDS, json={**body, "metadata": {"name": "by-admin"}})).status_code == 201


async def test_a_node_sets_its_own_machine(manager: Manager, api: httpx.AsyncClient) -> None:
    """It tells of what its root holds there."""
    assert (await api.post(f"{BASE}/nodeqoses", json=obj("NodeQoS", "n1"))).status_code == 201
    async with await enrolled(manager, "node.n1", "node", "n1") as node:
        own = hold("own", **FREE, value="10485760", node="n1")
        assert (await node.post(HOLDS, json=own)).status_code == 201
        assert (await node.post(HOLDS, json=hold("all", **FREE, value="10485760"))).status_code == 403


STRATEGY = obj("NodeStrategy", "mine", sysctls={"minFreeKbytesFactor": 500})
WAYS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", "", STRATEGY, {}),
    ("PUT", "/theirs", STRATEGY, {}),
    ("PATCH", "/theirs", {"spec": {"nodeSelector": {}}}, MERGE),
    ("PATCH", "/theirs?fieldManager=eve&force=true", STRATEGY, APPLY),
    ("PUT", "/theirs/status", STRATEGY, {}),
    ("DELETE", "/theirs", None, {}),
]


@pytest.mark.parametrize("role", ["editor", "viewer"])
@pytest.mark.parametrize(("method", "path", "body", "headers"), WAYS)
async def test_strategies_are_written_by_administrators_alone(
    manager: Manager, api: httpx.AsyncClient, role: str, method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    theirs = {**STRATEGY, "metadata": {"name": "theirs"}}
    assert (await api.post(STRATEGIES, json=theirs)).status_code == 201
    async with await enrolled(manager, "eve", role) as eve:
        answer = await eve.request(method, f"{STRATEGIES}{path}", json=body, headers=headers)
        assert (answer.status_code, "admin may" in answer.text) == (403, True), answer.text
        assert (await eve.get(f"{STRATEGIES}/theirs")).json()["spec"] == STRATEGY["spec"]


async def test_an_editor_cannot_have_every_node_look_at_very_many_settings(
    manager: Manager, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every tick, whether there are such disks or not. What counts is not how long the hold is."""
    monkeypatch.setattr(size, "MOST_SHARED", 3 * 64 * size.OF_SETTING)
    holds = f"{BASE}/namespaces/default/holds"
    async with await enrolled(manager, "eve", "editor") as eve:
        many = [hold(f"h{m}", knobs=[f"io.max[{m}:{n}]" for n in range(16)]) for m in range(4)]
        codes = [(await written(eve, holds, one))[0] for one in many]
        assert codes == [201, 201, 201, 422]
        wider = await eve.post(holds, json=hold("wider", knobs=[f"io.max[9:{n}]" for n in range(17)]))
        assert (wider.status_code, "68 settings" in wider.text) == (422, True)
