"""TLS as `certs` sets it up: who is trusted, what is spoken, how it is renewed, and what is refused at the start."""

from __future__ import annotations

import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest
from click.testing import CliRunner

from j10ce.cli.fleet.certs import client_command
from j10ce.errors import Denied, Invalid
from j10ce.manager.access.tls import certified
from j10ce.manager.identity import Role
from tests.security.plane import BASE, ENV, Manager, Plane, command


def shown(manager: Manager) -> str:
    """The certificate that a fresh connection is given."""
    return ssl.get_server_certificate(("127.0.0.1", manager.port))


def test_keys_are_private_and_certificates_are_not(plane: Plane) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in plane.pki.iterdir()}
    keys = {"ca.key": 0o600, "server.key": 0o600, "auth.yaml": 0o600}
    assert modes == keys | {"ca.crt": 0o644, "server.crt": 0o644}


@pytest.mark.parametrize("what", [("init",), ("server", "--host", "other"), ("client", "server", "--role", "admin")])
def test_nothing_is_overwritten(plane: Plane, what: tuple[str, ...]) -> None:
    before = {path: path.read_bytes() for path in plane.pki.iterdir()}
    argv = [sys.executable, "-m", "j10ce.cli.main", "certs", *what, "--dir", str(plane.pki)]
    assert subprocess.run(argv, env=ENV, capture_output=True).returncode in (3, 7)
    assert {path: path.read_bytes() for path in plane.pki.iterdir()} == before


def test_a_certificate_is_good_for_its_names_and_for_those_who_trust_its_authority(shared: Manager) -> None:
    port = shared.port
    with httpx.Client(verify=shared.plane.trust()) as client:
        assert client.get(f"https://localhost:{port}/healthz").status_code == 200
        assert client.get(f"https://127.0.0.1:{port}/healthz").status_code == 200
    with httpx.Client(verify=shared.plane.trust()) as client, pytest.raises(httpx.ConnectError, match="mismatch"):
        client.get(f"https://127.0.0.1:{port}/healthz", extensions={"sni_hostname": "other.example"})
    with httpx.Client() as stranger, pytest.raises(httpx.ConnectError, match="verify failed"):
        stranger.get(f"https://localhost:{port}/healthz")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_present_versions_are_spoken(shared: Manager, version: ssl.TLSVersion) -> None:
    context = shared.plane.trust()
    context.minimum_version = context.maximum_version = version
    with httpx.Client(verify=context) as client:
        assert client.get(f"{shared.server}/healthz").status_code == 200


@pytest.mark.parametrize("ciphers", ["AES256-GCM-SHA384:@SECLEVEL=0", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"])
def test_without_forward_secrecy_or_authentication_nothing_is_spoken(shared: Manager, ciphers: str) -> None:
    context = shared.plane.trust()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    with httpx.Client(verify=context) as client, pytest.raises(httpx.ConnectError):
        client.get(f"{shared.server}/healthz")


def test_old_versions_are_not(shared: Manager) -> None:
    context = shared.plane.trust()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with httpx.Client(verify=context) as client, pytest.raises(httpx.ConnectError):
        client.get(f"{shared.server}/healthz")


def test_plain_text_is_not_answered(shared: Manager) -> None:
    with httpx.Client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.get(f"http://127.0.0.1:{shared.port}/healthz")


def test_a_renewed_certificate_is_taken_up_without_a_restart(plane: Plane) -> None:
    with plane.manager() as manager:
        before = shown(manager)
        command("certs", "server", "--dir", str(plane.pki), "--renew")
        manager.hang_up()
        while shown(manager) == before:
            pass
        with manager.client("viewer") as client:
            assert client.get(f"{BASE}/qosprofiles").status_code == 200
        good = shown(manager)
        (plane.pki / "server.crt").write_text("nonsense")
        manager.hang_up()
        log = plane.folder / "manager.log"
        while "certificate.refused" not in log.read_text():
            pass
        assert shown(manager) == good, "the one before stays"


def test_a_client_certificate_is_a_caller(plane: Plane) -> None:
    for name, role in (("alice", "editor"), ("n1", "node")):
        command("certs", "client", name, "--role", role, "--dir", str(plane.pki))
    with plane.manager("--client-ca", f"{plane.pki}/ca.crt") as manager:
        codes = {}
        for name in ("alice", "n1"):
            context = plane.trust()
            context.load_cert_chain(plane.pki / f"{name}.crt", plane.pki / f"{name}.key")
            with httpx.Client(base_url=manager.server, verify=context) as client:
                codes[name] = [
                    client.get(f"{BASE}/{path}").status_code
                    for path in ("qosprofiles", "credentials", "nodedocuments/n1", "nodedocuments/n2")
                ]
        assert codes == {"alice": [200, 403, 200, 200], "n1": [403, 403, 200, 403]}
        with manager.client() as nobody:
            assert nobody.get(f"{BASE}/qosprofiles").status_code == 401


@pytest.mark.parametrize("name", ["node.h1", "bootstrap.rack", "system", "owner"])
def test_no_certificate_is_made_whose_name_every_manager_refuses(plane: Plane, name: str) -> None:
    words = [name, "--role", "admin", "--dir", str(plane.pki)]
    refused = CliRunner().invoke(client_command, words).exception
    assert isinstance(refused, Invalid)
    assert "not the name of a caller of role admin" in str(refused)
    assert not (plane.pki / f"{name}.crt").exists()


@pytest.mark.parametrize(
    ("subject", "role"),
    [
        pytest.param({"commonName": "a", "organizationName": "j10ce:admin"}, Role.ADMIN, id="ours"),
        pytest.param({"commonName": "a", "organizationName": "admin"}, None, id="another organisation"),
        pytest.param({"commonName": "a", "organizationName": "j10ce:root"}, None, id="another role"),
        pytest.param({"commonName": "a"}, None, id="no organisation"),
        pytest.param({"organizationName": "j10ce:admin"}, None, id="no name"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_a_certificate_names_a_role_or_nobody(subject: dict[str, str], role: Role | None) -> None:
    peer = {"subject": tuple(((k, v),) for k, v in subject.items()), "notAfter": "Jan  1 00:00:00 2030 GMT"}
    ticket = certified(peer)
    assert (ticket.caller.role if ticket else None) == role


REFUSED = [
    pytest.param(["--listen", "0.0.0.0:0", "--token-file", "{}/token"], "not loopback", id="open without TLS"),
    pytest.param(["--listen", "127.0.0.1:0"], "nobody could get in", id="no credentials"),
    pytest.param(["--listen", "0.0.0.0:0", "--tls-cert", "{}/pki/server.crt", "--tls-key", "{}/pki/server.key"],
                 "nobody could get in", id="open without credentials"),
    pytest.param(["--token-file", "{}/token", "--tls-cert", "{}/pki/server.crt"], "go together", id="half a pair"),
    pytest.param(["--token-file", "{}/token", "--client-ca", "{}/pki/ca.crt"], "needs TLS", id="client CA without TLS"),
    pytest.param(["--token-file", "{}/token", "--grpc-mtls-listen", "127.0.0.1:0"], "needs certificates",
                 id="gRPC with certificates without an authority"),
    pytest.param(["--auth", "{}/none.yaml"], "No such file", id="no auth file"),
    pytest.param(["--auth", "{}/pki/ca.crt"], "0644", id="an open auth file"),
    pytest.param(["--token-file", "{}/token", "--tls-cert", "{}/pki/server.crt", "--tls-key", "{}/pki/ca.key"],
                 "cannot use the certificate", id="a key that does not fit"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "why"), REFUSED)
def test_an_unsafe_start_is_refused_with_the_way_out(
    shared: Manager, tmp_path: Path, argv: list[str], why: str
) -> None:
    folder = shared.plane.folder
    listen = [] if "--listen" in argv else ["--listen", "127.0.0.1:0"]
    arguments = [word.format(folder) for word in argv]
    command_ = [sys.executable, "-m", "j10ce.manager.main", "--store", "memory:", *listen, *arguments]
    done = subprocess.run(command_, env=ENV, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_that_others_can_read_is_refused(plane: Plane) -> None:
    from j10ce.manager.access.tls import server_context

    os.chmod(plane.pki / "server.key", 0o644)
    with pytest.raises(Denied, match="0644"):
        server_context(plane.pki / "server.crt", plane.pki / "server.key")
