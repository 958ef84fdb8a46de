"""Workloads come from the agent's socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import BASE, assemble

WORKLOAD = {"metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}}, "spec": {"future": 1}}
LISTING = json.dumps({"kind": "WorkloadList", "items": [WORKLOAD]}).encode()


async def fake_agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    path = head.split(b" ")[1].decode()
    if path.endswith("/silent"):
        writer.close()
        return
    code, body = (404, b'{"kind":"Status","code":404}') if path.endswith("/gone") else (200, LISTING)
    writer.write(f"HTTP/1.1 {code} x\r\nContent-Length: {len(body)}\r\nX-Path: {path}\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{BASE}/workloads", 200),
        (f"{BASE}/namespaces/default/workloads", 200),
        (f"{BASE}/workloads?labelSelector=app%3Dweb", 200),
        (f"{BASE}/namespaces/default/workloads/gone", 404),
        (f"{BASE}/namespaces/default/workloads/silent", 503),
        (f"{BASE}/workloads?watch=1", 405),
    ],
)
async def test_the_agents_answer_is_passed_on(tmp_path: Path, path: str, code: int) -> None:
    socket = tmp_path / "agent.sock"
    async with await asyncio.start_unix_server(fake_agent, socket):
        manager = assemble(MemoryStore(lambda: WALL), agent=socket)
        async with manager.client() as api:
            answer = await api.get(path)
    assert answer.status_code == code
    assert code != 200 or [item["metadata"] for item in answer.json()["items"]] == [WORKLOAD["metadata"]]


@pytest.mark.parametrize("agent", [None, "absent.sock"])
async def test_without_an_agent_there_is_no_listing(tmp_path: Path, agent: str | None) -> None:
    manager = assemble(MemoryStore(lambda: WALL), agent=tmp_path / agent if agent else None)
    async with manager.client() as api:
        answer = await api.get(f"{BASE}/workloads")
    assert (answer.status_code, answer.json()["reason"]) == (503, "ServiceUnavailable")
