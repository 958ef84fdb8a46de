"""A stock kubectl, Debian's old one and a current one, reads our documents: explain, and validation."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.cli.fleet.authority import Authority
from j10ce.manager.access.signing import CertificateWish
from tests.lab.debian import program
from tests.manager import process

pytestmark = pytest.mark.lab

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
GOOD = """
apiVersion: j10ce.io/v1alpha1
kind: QoSProfile
metadata: {name: gold}
spec: {tier: reserved, cpu: {weight: 2}, network: {floor: 100Mbit, ceiling: 200000000}}
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a manager that serves TLS: kubectl sends its token over nothing else."""
    folder = tmp_path_factory.mktemp("manager")
    authority = Authority(folder / "pki", time.time())  # noqa: TID251  certificates are judged by the real clock
    authority.create("test", 3600)
    authority.issue("server", CertificateWish("server", 3600, ("127.0.0.1",)), renew=False)
    pair = ("--tls-cert", f"{folder}/pki/server.crt", "--tls-key", f"{folder}/pki/server.key")
    manager = process.start(folder, *pair)
    yield folder / "kubeconfig"
    process.end(manager.process)


@pytest.fixture(scope="module", params=["kubectl-old", "kubectl"])
def kubectl(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    home = tmp_path_factory.mktemp(request.param)  # its cache
    executable = program(request.param)

    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
        return subprocess.run([executable, *words], env=env, input=text, capture_output=True, text=True, timeout=60)

    return run


def test_explain_tells_what_a_field_means(kubectl: Kubectl) -> None:
    output = kubectl("explain", "qosprofile.spec.cpu")
    assert output.returncode == 0, output.stderr
    assert "What it means for CPU time." in output.stdout
    assert "weight\t<integer>" in output.stdout
    assert "Its share among the workloads of one tier." in output.stdout


def test_explain_goes_down_to_the_leaves(kubectl: Kubectl) -> None:
    output = kubectl("explain", "mrp", "--recursive")
    assert output.returncode == 0, output.stderr
    assert "A promise" in output.stdout
    for field in ("matchExpressions", "diskWrite\t<string>", "canaryPercent\t<integer>", "witness"):
        assert field in output.stdout


@pytest.mark.parametrize("name", ["nodeqoses.status.node", "holds.spec", "workloads.spec", "policyrevisions"])
def test_explain_knows_every_kind(kubectl: Kubectl, name: str) -> None:
    output = kubectl("explain", name)
    assert output.returncode == 0, output.stderr


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        pytest.param(
            ("weight: 2", "wieght: 2"), "wieght.*unknown field|unknown field.*wieght", id="a misspelled field"
        ),
        pytest.param(("weight: 2", "weight: heavy"), "weight", id="a wrong type"),
    ],
)
def test_a_wrong_manifest_is_refused(kubectl: Kubectl, wrong: tuple[str, str], complaint: str) -> None:
    """By the old one itself; the current one lets the server judge, since we say that it can."""
    output = kubectl("create", "--validate=true", "-f", "-", text=GOOD.replace(*wrong))
    assert output.returncode != 0
    assert re.search(complaint, output.stderr), output.stderr
    assert kubectl("get", "qosprofile", "gold").returncode != 0


def test_a_right_manifest_passes_the_validation(kubectl: Kubectl) -> None:
    output = kubectl("create", "--validate=true", "--dry-run=server", "-f", "-", text=GOOD)
    assert output.returncode == 0, output.stderr
    assert "(server dry run)" in output.stdout
