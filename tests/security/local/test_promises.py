"""What a user of the same machine tries with names: to be taken for what somebody reserved something for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.agent.socket.admission import AdmitRequest, Caller
from j10ce.testing import build
from tests.agent.ring.test_runner import Scene, running

DB = AdmitRequest(name="db-0", namespace="payments", labels={"app": "db"})
USER = 1001


async def placed(scene: Scene, uid: int, request: AdmitRequest = DB) -> Any:
    agent = scene.ring.agent
    policy = build.reservation("db", namespace="payments", labels={"app": "db"}, cpu="500m")
    await scene.shell.on_ring(agent.obey, replace(agent.document, policies=(policy,)))
    return (await scene.operations.admit(request, Caller(1, uid, uid)))["entitlement"]


@pytest.mark.parametrize("uid", [0, 1002], ids=["root", "the user whose agent it is"])
async def test_what_is_reserved_for_a_namespace_is_for_what_root_places_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1002)
    async with running(tmp_path) as scene:
        assert (await placed(scene, uid))["floor"][0] == 500


async def test_namespace_and_labels_earn_another_user_no_floor(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        got = await placed(scene, USER)
        said = "MinimalReservationPolicy/payments/db is for what root places here"
        assert (got["floor"][0], got["notes"]) == (0, [f"{said}: uid 1001 may give any namespace and label"])


async def test_a_user_s_own_minimum_is_his_wherever_he_says_to_be(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        mine = replace(DB, minimum=build.minimum(cpu="250m"))
        assert (await placed(scene, USER, mine))["floor"][0] == 250
