"""A manager of a cluster whose API server is away: what it serves, to whom, and under which certificate."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import structlog

from j10ce.errors import Denied
from j10ce.kube.access import read_access
from j10ce.manager import config as settings
from j10ce.manager.access import tls
from j10ce.manager.access.signing import CertificateWish, issued, new_authority, text
from j10ce.manager.kube_plane import KubePlane
from j10ce.manager.server import announce, listen
from j10ce.manager.telemetry.trace import open_tracer
from j10ce.store.kube.store import KubeStore
from j10ce.store.schemes import elector_for, open_store

WALL = 1_800_000_000.0
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
"""


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncIterator[int]:
    """The port of a manager that runs."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    config = settings.read([f"--store=kube://{folder}/kubeconfig", "--listen=[::]:0", *options])
    listener, store = listen(config), KubeStore(read_access(config.store, {}), lambda: WALL, patience_s=0.0)
    plane = KubePlane(config, store, elector_for(store, "m"), lambda: WALL, open_tracer("", "m"))
    with closing(listener):
        async with asyncio.TaskGroup() as group:
            group.create_task(plane.run(listener))
            yield listener.getsockname()[1]
            plane.stop()
    await store.close()


def connect(host: str, port: int) -> http.client.HTTPSConnection:
    """To whoever is there, whatever it shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, context=context, timeout=60)


async def met(host: str, port: int, path: str = "/healthz") -> tuple[int, str]:
    """(status, the certificate that is served)."""

    def ask() -> tuple[int, str]:
        with closing(connect(host, port)) as connection:
            connection.request("GET", path)
            shown: Any = connection.sock
            pem = ssl.DER_cert_to_PEM_cert(shown.getpeercert(binary_form=True))
            with connection.getresponse() as answer:
                return answer.status, pem

    return await asyncio.to_thread(ask)


async def reviewed(port: int, webhook: str) -> Any:
    """What a webhook answers about a new pod."""
    pod = {"kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": "shop", "object": {"metadata": {"name": "p"}}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **pod}}

    def ask() -> Any:
        with closing(connect("127.0.0.1", port)) as connection:
            connection.request("POST", f"/webhooks/{webhook}", json.dumps(review))
            with connection.getresponse() as answer:
                return json.load(answer)["response"]

    return await asyncio.to_thread(ask)


def pair(folder: Path, name: str) -> str:
    """A certificate of a new authority, as files that somebody else renews; its text."""
    made = issued(CertificateWish("x", 900.0, ("localhost",)), new_authority(name, 9_000.0, WALL), WALL)
    for file, content in (("tls.key", made.private), ("tls.crt", text(made.certificate))):
        fresh = folder / f"{file}.new"
        fresh.touch(0o600)
        fresh.write_text(content)
        fresh.replace(folder / file)
    return text(made.certificate)


async def test_it_is_alive_before_the_api_server_has_given_it_a_certificate(tmp_path: Path) -> None:
    async with serving(tmp_path) as port:
        assert (await met("127.0.0.1", port))[0] == 200
        assert (await met("127.0.0.1", port, "/readyz"))[0] == 503


@pytest.mark.parametrize("webhook", ["validate", "mutate"])
async def test_what_it_cannot_judge_is_admitted_unless_it_is_asked_to_be_closed(tmp_path: Path, webhook: str) -> None:
    async with serving(tmp_path) as port:
        review = await reviewed(port, webhook)
    assert review["allowed"]
    assert review["warnings"]
    async with serving(tmp_path, "--fail-closed") as port:
        review = await reviewed(port, webhook)
    assert not review["allowed"]
    assert "could not judge it, and is closed" in review["status"]["message"]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="Unsupported: this machine has no IPv6")
async def test_it_is_reached_over_ipv6_as_over_ipv4(tmp_path: Path) -> None:
    async with serving(tmp_path) as port:
        assert [(await met(host, port))[0] for host in ("::1", "127.0.0.1")] == [200, 200]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="Unsupported: this machine has no IPv6")
async def test_a_scheduler_on_the_same_machine_needs_no_certificate_over_ipv6_or_ipv4(tmp_path: Path) -> None:
    async with serving(tmp_path) as port:
        asked = [(await met(host, port, "/extender/filter"))[0] for host in ("::1", "127.0.0.1")]
    assert asked == [503, 503], "nobody leads, and the answer says so"


def test_a_machine_without_ipv6_serves_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listen(settings.read(["--store=kube:", "--listen=[::]:0"])) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


async def test_a_certificate_that_somebody_renews_is_served_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_S", 0.01)
    first = pair(tmp_path, "first")
    async with serving(tmp_path, f"--tls-cert={tmp_path}/tls.crt", f"--tls-key={tmp_path}/tls.key") as port:
        assert await met("127.0.0.1", port) == (200, first)
        second = pair(tmp_path, "second")
        async with asyncio.timeout(20):
            while (await met("127.0.0.1", port))[1] != second:
                pass


def test_an_authority_without_a_certificate_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    config = settings.read([f"--store=kube://{tmp_path}/kubeconfig", "--webhook-ca=ca.crt"])
    store = open_store(config.store, lambda: WALL)
    with pytest.raises(Denied, match="--tls-cert"):
        KubePlane(config, store, elector_for(store, "m"), lambda: WALL, open_tracer("", "m"))


def test_the_log_tells_the_address_as_it_is_served() -> None:
    config = settings.read(["--store=kube:", "--listen=127.0.0.1:0"])
    with listen(config) as listener, structlog.testing.capture_logs() as logged:
        announce(config, listener, "", secure=True)
        announce(config, listener, "", secure=False)
    assert [line["server"].partition(":")[0] for line in logged] == ["https", "http"]
