"""What a request of the service does, on real files and sockets."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from j10ce.bench.crowd import redis, requests
from j10ce.bench.crowd.far import answer
from j10ce.bench.crowd.gated import Gated
from j10ce.bench.crowd.requests import BLOCK, KINDS
from j10ce.bench.crowd.service import FAILED

NO_ONE_CLOSES = "ignore::pytest.PytestUnraisableExceptionWarning"  # what a service has open until it ends


def reads(tmp_path: Path, first: int, size: int) -> str:
    path = tmp_path / "disk"
    path.write_bytes(bytes(16 * BLOCK))
    return f"{path}:{first}:{size}"


@pytest.mark.parametrize("kind", ["read", "pages"])
def test_blocks_are_read_where_they_are_the_services(kind: str, tmp_path: Path) -> None:
    KINDS[kind](reads(tmp_path, 8 * BLOCK, 8 * BLOCK), 0.0)()
    beyond = KINDS[kind](reads(tmp_path, 16 * BLOCK, 8 * BLOCK), 0.0)
    with pytest.raises(OSError, match=f"0 of {BLOCK} bytes"):
        beyond()


@pytest.mark.filterwarnings(NO_ONE_CLOSES)
def test_a_peer_answers_a_small_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(requests, "RPC_PORT", listening.getsockname()[1])
        threading.Thread(target=lambda: answer(listening.accept()[0]), daemon=True).start()
        call = KINDS["rpc"]("127.0.0.1", 0.0)
        call()
        call()


def test_a_service_whose_requests_cannot_be_done_says_why(tmp_path: Path) -> None:
    table = os.memfd_create("latencies")
    os.ftruncate(table, 1 << 20)
    words = (table, 10.0, 10.0, 1.0, 2, "read", f"{tmp_path}/nowhere:0:4096", 0, 1, 0)
    with Gated("j10ce.bench.crowd.service", *words, pass_fds=(table,)) as service:
        service.ready()
        service.go()
        assert service.wait(60.0) == FAILED
        assert "No such file or directory" in service.last_words()
    os.close(table)


@pytest.mark.filterwarnings(NO_ONE_CLOSES)
@pytest.mark.skipif(redis.program() is None, reason=f"Unsupported: {redis.PROGRAM} is not installed")
def test_a_real_redis_answers_and_ends(tmp_path: Path) -> None:
    at = str(tmp_path / "redis.sock")
    with redis.started(at):
        ask = KINDS["redis"](at, 0.0)
        ask()
        ask()
    with pytest.raises(ConnectionRefusedError):
        redis.connected(at)
