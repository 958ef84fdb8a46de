"""Nobody gets in without the token, from another machine's name, or from another site's page."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from j10ce.cli import accounts
from j10ce.daemon.secret_files import read_token, write_kubeconfig
from j10ce.errors import Denied
from j10ce.manager.access.auth import is_loopback
from tests.manager.assembled import BASE, TOKEN, Manager

CLOSED = ["/apis", BASE, f"{BASE}/qosprofiles", "/metrics", "/openapi.json", f"{BASE}/nodedocuments/n1", "/nothing"]


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param("", id="none"),
        pytest.param("Bearer ", id="empty"),
        pytest.param("Bearer wrong", id="wrong"),
        pytest.param(TOKEN, id="bare"),
        pytest.param(f"Basic {TOKEN}", id="another scheme"),
        pytest.param(f"Bearer {TOKEN}x", id="longer"),
        pytest.param(f"Bearer {TOKEN[:-1]}", id="shorter"),
    ],
)
async def test_a_token_is_needed(manager: Manager, path: str, authorization: str) -> None:
    async with manager.client(authorization=authorization) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
async def test_health_needs_no_token(manager: Manager, path: str) -> None:
    async with manager.client(authorization="") as client:
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", f"{BASE}/qosprofiles"])
@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:7443", "127.0.0.1.evil.example", "10.0.0.1:7443", "", "localhost:x", "[::2]:1"],
)
async def test_a_foreign_host_is_refused(manager: Manager, host: str, path: str) -> None:
    async with manager.client(host=host) as client:
        assert (await client.get(path)).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost:7443", "[::1]:7443", "[::1]", "127.8.8.8:1"])
async def test_this_machines_names_are_accepted(manager: Manager, host: str) -> None:
    async with manager.client(host=host) as client:
        assert (await client.get(f"{BASE}/qosprofiles")).status_code == 200


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        pytest.param("http://127.0.0.1:7443", 200, id="the same"),
        pytest.param("https://127.0.0.1:7443", 200, id="the same, over TLS"),
        pytest.param("http://127.0.0.1:8080", 403, id="another port"),
        pytest.param("http://evil.example", 403, id="another site"),
        pytest.param("null", 403, id="a sandboxed page"),
        pytest.param("", 403, id="empty"),
    ],
)
async def test_origin_must_be_ours(manager: Manager, origin: str, code: int) -> None:
    async with manager.client(origin=origin) as client:
        assert (await client.get(f"{BASE}/qosprofiles")).status_code == code


@pytest.mark.parametrize(
    ("address", "ours"),
    [("127.0.0.1:0", True), ("[::1]:80", True), ("localhost:1", True), ("0.0.0.0:1", False), ("[::]:1", False)],
)
def test_loopback_is_recognised(address: str, ours: bool) -> None:
    assert is_loopback(address) is ours


def test_a_token_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    token = read_token(path)
    assert len(token) > 30
    assert read_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    path.chmod(0o640)
    with pytest.raises(Denied, match="0640"):
        read_token(path)


def test_an_empty_token_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    with pytest.raises(Denied, match="holds no token"):
        read_token(path)


def test_the_kubeconfig_is_private_even_over_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch(0o666)
    write_kubeconfig(path, "http://127.0.0.1:7443", TOKEN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert TOKEN in path.read_text()


async def test_on_loopback_a_password_is_a_token(manager: Manager) -> None:
    async with manager.client(authorization="") as api:
        answers = [await api.get(BASE, auth=("owner", word)) for word in (TOKEN, "guess", "")]
    assert [answer.status_code for answer in answers] == [200, 401, 401]


@pytest.mark.parametrize("header", ["Basic", "Basic ", "Basic !", "Basic c2VzYW1l", "Basic c2VzYW1lOg==", "Bearer", ""])
async def test_half_a_password_is_none(manager: Manager, header: str) -> None:
    async with manager.client(authorization=header) as api:
        assert (await api.get(BASE)).status_code == 401


@pytest.mark.parametrize("server", ["http://127.0.0.1:7443", "http://[::1]:7443", "https://cp:7443"])
def test_a_kubeconfig_leads_kubectl_and_our_own_command_to_the_same_place(tmp_path: Path, server: str) -> None:
    token = "a/b@c:d"
    write_kubeconfig(tmp_path / "kubeconfig", server, token)
    account = accounts.read(tmp_path / "kubeconfig")
    assert (account.server, account.token) == (server, token)
    text = (tmp_path / "kubeconfig").read_text()
    assert ("owner:a%2Fb%40c%3Ad@" in text) is server.startswith("http://")
