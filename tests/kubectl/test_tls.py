"""A kubeconfig that `j10ce-qos certs` made leads kubectl to a control plane with TLS, with the rights of its role."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from j10ce.cli.fleet.certs import certs_command
from tests.kubectl.kubectl import Kubectl, policy
from tests.lab.debian import program
from tests.manager import process

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Certificates, and a manager that serves with them."""
    folder = tmp_path_factory.mktemp("tls")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    pki = folder / "pki"
    for words in (
        ("init",),
        ("server", "--host", "127.0.0.1"),
        ("kubeconfig", "--server", f"https://{listen}", "--user", "eve", "--role", "editor"),
    ):
        assert CliRunner().invoke(certs_command, [*words, "--dir", str(pki)]).exit_code == 0
    pair = ("--tls-cert", f"{pki}/server.crt", "--tls-key", f"{pki}/server.key", "--auth", f"{pki}/auth.yaml")
    running = process.start(folder, *pair, "--listen", listen)
    yield pki
    process.end(running.process)


def test_an_editor_edits_and_does_no_more(home: tuple[str, Path], pki: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(program(home[0]), pki / "kubeconfig", tmp_path, home[0])
    assert "created" in kubectl("create", "-f", "-", given=policy())
    assert "db" in kubectl("get", "mrp")
    refused = kubectl("get", "credentials", code=1)
    assert "Forbidden" in refused
    assert "eve (editor) may not list Credential" in refused
