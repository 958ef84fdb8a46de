"""The same verbs as on a host, with the cluster's own kubeconfig."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube.manager.managing import Work, agent
from tests.kube.manifests import CLONE
from tests.lab.kube.cluster import Cluster

pytestmark = [pytest.mark.kube, pytest.mark.usefixtures("manager")]
POLICY = """\
apiVersion: j10ce.io/v1alpha1
kind: MinimalReservationPolicy
metadata: {{name: db, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: db}}}}
  minimum: {{cpu: "2", memory: 4Gi}}
  units: 1
"""


class Cli:
    def __init__(self, home: Path, *options: str) -> None:
        self._options = options
        self._env = {**os.environ, "PYTHONPATH": str(CLONE / "src"), "HOME": str(home), "J10CE_DIR": str(home)}
        for name in ("KUBECONFIG", "J10CE_KUBECONFIG", "J10CE_SERVER"):
            self._env.pop(name, None)

    def __call__(self, *words: str, code: int = 0, given: str = "", **environ: str) -> str:
        argv = [sys.executable, "-m", "j10ce.cli.main", *self._options, *words]
        done = subprocess.run(argv, env=self._env | environ, input=given, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def cli(cluster: Cluster, tmp_path: Path) -> Cli:
    return Cli(tmp_path, "--kubeconfig", str(cluster.kubeconfig("admin")))


def test_apply_get_describe_and_delete(cli: Cli, work: Work) -> None:
    text = POLICY.format(namespace=work.namespace)
    assert "created" in cli("apply", "-f", "-", given=text)
    work.wait("db", lambda s: s.get("units", {}).get("placed") == 1)
    assert "Pending" in cli("get", "mrp", "-n", work.namespace)
    assert "1 unit on 1 node, 0 in use" in cli("describe", "mrp", "db", "-n", work.namespace)
    assert "Effect:" in cli("describe", "qosprofile", "ls")
    assert "deleted" in cli("delete", "mrp", "db", "-n", work.namespace)
    assert "No minimalreservationpolicies" in cli("get", "mrp", "-n", work.namespace)


@pytest.mark.one_version
def test_the_users_own_kubeconfig_is_found(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_bytes(cluster.kubeconfig("admin").read_bytes())
    assert "guaranteed-pro" in Cli(tmp_path)("get", "qosprofiles")
    named = {"KUBECONFIG": str(cluster.kubeconfig("admin"))}
    assert "guaranteed-pro" in Cli(tmp_path / "nobody")("get", "qosprofiles", **named)


def test_explain_of_a_pod_says_who_promised_what_and_whether_it_holds(cluster: Cluster, cli: Cli, work: Work) -> None:
    work.policy("db", selector={"matchLabels": {"app": "db"}}, minimum={"cpu": "2"}, units=1)
    work.pod("db-0", "fake-0001", app="db", **{"j10ce.io/qos-profile": "ls"})
    work.wait("db", lambda s: s.get("units", {}).get("used") == 1)
    floor = {"node": "fake-0001", "workload": f"{work.namespace}/db-0", "resource": "cpu", "promised": "2"}
    with agent(cluster, "fake-0001", effective=[floor | {"effective": "1", "reason": "a sibling has more weight"}]):
        output = cli("explain", "pod/db-0", "-n", work.namespace)
    assert f"pod {work.namespace}/db-0 on node fake-0001" in output
    assert "profile ls, tier sensitive" in output
    assert "cpu 2" in output
    assert "a sibling has more weight" in output
    silent = cli("explain", "pod/db-0", "-n", work.namespace)
    assert "no agent reports from node fake-0001" in silent


@pytest.mark.one_version
def test_explain_of_a_pod_that_is_not_there_is_not_found(cli: Cli, work: Work) -> None:
    assert "not found" in cli("explain", "pod/nobody", "-n", work.namespace, code=6)
