"""The real process: start, announce, serve, refuse to be unsafe, stop, and start again with everything."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.manager import process
from tests.manager.assembled import BASE, POLICIES, policy
from tests.manager.process import Running

Start = Callable[[], Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Running] = []

    def begin() -> Running:
        begun.append(process.start(tmp_path))
        return begun[-1]

    yield begin
    for manager in begun:
        process.end(manager.process)


def kept(obj: Any) -> tuple[Any, ...]:
    """What its owner said, whatever the leader has made of it since."""
    return obj["metadata"]["name"], obj["metadata"]["uid"], obj["metadata"]["generation"], obj["spec"]


def wish(obj: dict[str, Any]) -> dict[str, Any]:
    """What a client said; the manager judges it meanwhile."""
    meta = obj["metadata"]
    return {"name": meta["name"], "uid": meta["uid"], "generation": meta["generation"], "spec": obj["spec"]}


def test_it_serves_stops_and_comes_back_with_everything(start: Start, tmp_path: Path) -> None:
    manager = start()
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    with manager.client() as api:
        assert api.get("/readyz").text == "ok\n"
        assert "ls" in [item["metadata"]["name"] for item in api.get(f"{BASE}/qosprofiles").json()["items"]]
        made = api.post(POLICIES, json=policy("db")).json()
    assert manager.stop() == 0
    again = start()
    assert again.token == manager.token
    with again.client() as api:
        assert kept(api.get(f"{POLICIES}/db").json()) == kept(made)
        since = made["metadata"]["resourceVersion"]
        api.post(POLICIES, json=policy("after"))
        with api.stream("GET", POLICIES, params={"watch": "1", "resourceVersion": since}) as watch:
            assert "after" in (json.loads(line)["object"]["metadata"]["name"] for line in watch.iter_lines())
    assert again.stop(signal.SIGINT) == 0


def test_stopping_ends_open_watches(start: Start) -> None:
    manager = start()
    with manager.client() as api, api.stream("GET", POLICIES, params={"watch": "1"}) as watch:
        threading.Thread(target=manager.stop).start()
        assert list(watch.iter_lines()) == []
    assert manager.process.wait(30) == 0


def test_what_was_acknowledged_survives_a_kill(start: Start) -> None:
    manager = start()
    with manager.client() as api:
        made = [api.post(POLICIES, json=policy(f"p-{n}")).json() for n in range(20)]
    assert manager.stop(signal.SIGKILL) == -signal.SIGKILL
    with start().client() as api:
        listed = [kept(obj) for obj in api.get(POLICIES).json()["items"]]
        assert listed == sorted((kept(obj) for obj in made), key=lambda obj: str(obj[0]))


def test_a_chunked_body_over_the_limit_is_cut_off(start: Start) -> None:
    with start().client() as api:
        headers = {"content-type": "application/json"}
        answer = api.post(POLICIES, content=(b" " * 65536 for _ in range(64)), headers=headers)
        assert answer.status_code == 413
        assert api.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("more", "listen", "words"),
    [
        pytest.param((), "0.0.0.0:0", "is not loopback: give --tls-cert and --tls-key", id="open to the network"),
        pytest.param((), "nonsense", "not address:port", id="no address"),
        pytest.param((), "127.0.0.1:99999", "not address:port", id="no port"),
        pytest.param((), "127.1.1.1.1:80", "is not loopback", id="no address of ours"),
        pytest.param(("--store", "mysql://x"), "127.0.0.1:0", "unknown store", id="another database"),
        pytest.param(("--store", "sqlite:////proc/x/y"), "127.0.0.1:0", "cannot open", id="no place for a file"),
    ],
)
def test_it_refuses_what_is_unsafe_or_unclear(tmp_path: Path, more: tuple[str, ...], listen: str, words: str) -> None:
    refusing = process.launch(tmp_path, *more, listen=listen)
    _, errors = refusing.communicate(timeout=60)
    assert refusing.returncode == 1
    assert words in errors
    assert "Traceback" not in errors
