"""Credential plugins of kubeconfig files, run as kubectl runs them: real programs, no shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from j10ce.cli import accounts
from j10ce.errors import Denied, Invalid, QosError, Unsupported
from j10ce.kube.access import read_access
from j10ce.kube.exec_credential import ClusterCredential
from j10ce.kube.kubeconfig import read_kubeconfig
from j10ce.kube.transport import KubeHttp, KubeRequest
from tests.kube.client.token_server import serving

V1 = "client.authentication.k8s.io/v1"


def program(folder: Path, status: dict[str, Any], version: str = V1, name: str = "plugin", code: int = 0) -> Path:
    """Writes down how it was called, and prints a credential; `N` in a token is the number of the call."""
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    file = folder / name
    file.write_text(
        f"#!{sys.executable} -I\n"
        "import json, os, sys\n"
        f"log = {str(folder / 'calls')!r}\n"
        "info, region = os.environ['KUBERNETES_EXEC_INFO'], os.environ.get('REGION')\n"
        "words = {'argv': sys.argv[1:], 'info': info, 'region': region}\n"
        "open(log, 'a').write(json.dumps(words) + chr(10))\n"
        f"print({answer!r}.replace('N', str(len(open(log).readlines()))))\n"
        f"sys.exit({code})\n"
    )
    file.chmod(0o755)
    return file


def calls(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def written(folder: Path, server: str = "http://10.0.0.1", **words: Any) -> Path:
    section = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **words}
    cluster = {"server": server, "tls-server-name": "kubernetes"}
    file = folder / "config"
    file.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"exec": section}}],
            }
        )
    )
    return file


def asked(file: Path) -> ClusterCredential:
    plugin = read_kubeconfig(file).plugin
    assert plugin is not None
    return plugin.credential()


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_a_plugin_tells_the_token(tmp_path: Path, version: str) -> None:
    program(tmp_path, {"token": "secret"}, version)
    file = written(
        tmp_path, apiVersion=version, args=["get-token", "$HOME; ls"], env=[{"name": "REGION", "value": "eu"}]
    )
    assert accounts.read(file).token == "secret"
    (call,) = calls(tmp_path)
    assert call["argv"] == ["get-token", "$HOME; ls"], "as they are written: no shell reads them"
    assert call["region"] == "eu"
    assert json.loads(call["info"]) == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


def test_a_plugin_hears_of_the_cluster_where_the_file_says_so(tmp_path: Path) -> None:
    program(tmp_path, {"token": "secret"})
    asked(written(tmp_path, provideClusterInfo=True))
    (call,) = calls(tmp_path)
    assert json.loads(call["info"])["spec"]["cluster"] == {"server": "http://10.0.0.1", "tls-server-name": "kubernetes"}


def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    program(tmp_path, {"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    assert accounts.read(written(tmp_path)).certificate == ("CERT".replace("N", "1"), "KEY")


def test_a_credential_is_kept_until_it_ends(tmp_path: Path) -> None:
    program(tmp_path, {"token": "tN", "expirationTimestamp": "1970-01-01T01:00:00Z"})
    now = 0.0
    plugin = read_kubeconfig(written(tmp_path), wall=lambda: now).plugin
    assert plugin is not None
    assert [plugin.credential().token for _ in range(3)] == ["t1"] * 3
    now = 3_590.0
    assert plugin.credential().token == "t2"
    plugin.forget()
    assert plugin.credential().token == "t3"


async def test_a_store_shows_it_and_asks_anew_when_it_is_refused(tmp_path: Path) -> None:
    program(tmp_path, {"token": "tN"})
    with serving({"t2"}) as server:
        http = KubeHttp(read_access(f"kube://{written(tmp_path, server.url)}", {}), patience_s=5.0)
        with pytest.raises(Denied, match="does not know"):
            await http.ask(KubeRequest("GET", "/version"))
        assert await http.ask(KubeRequest("GET", "/version")) == b"{}"
        assert await http.ask(KubeRequest("GET", "/version")) == b"{}"
        await http.close()
    assert server.shown == ["t1", "t2", "t2"]
    assert len(calls(tmp_path)) == 2


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        pytest.param({"token": "x"}, 3, "failed with code 3", id="it fails"),
        pytest.param({}, 0, "neither a token nor a certificate", id="it says nothing"),
        pytest.param({"clientKeyData": "KEY"}, 0, "without its key", id="half a pair"),
        pytest.param({"token": 5}, 0, "no ExecCredential", id="nonsense"),
    ],
)
def test_a_plugin_that_fails_is_named(tmp_path: Path, status: dict[str, Any], code: int, words: str) -> None:
    program(tmp_path, status, code=code)
    with pytest.raises(Denied, match=rf"\./plugin .*{words}"):
        asked(written(tmp_path))


def test_a_plugin_of_another_version_is_not_believed(tmp_path: Path) -> None:
    program(tmp_path, {"token": "x"}, "client.authentication.k8s.io/v1beta1")
    with pytest.raises(Denied, match=r"v1beta1.* instead of"):
        asked(written(tmp_path))


@pytest.mark.parametrize(
    ("section", "error", "words"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, Unsupported, "v1alpha1"),
        ({"command": 7}, Invalid, "exec"),
        ({"interactiveMode": "Perhaps"}, Invalid, "interactiveMode"),
        ({"interactiveMode": "Always"}, Denied, "needs a terminal"),
        ({"command": "no-such-plugin-here", "installHint": "see vendor.example"}, Unsupported, "see vendor.example"),
        ({"command": "./absent"}, Denied, "No such file"),
    ],
)
def test_what_cannot_be_run_says_why(
    tmp_path: Path, section: dict[str, Any], error: type[QosError], words: str
) -> None:
    program(tmp_path, {"token": "x"})
    with pytest.raises(error, match=words):
        asked(written(tmp_path, **section))


def test_the_current_folder_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    program(hostile, {"token": "stolen"}, name="some-login")
    file = written(tmp_path, command="some-login")
    monkeypatch.chdir(hostile)
    for path in ("", ".", "/nonexistent"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises((Denied, Unsupported), match="some-login"):
            asked(file)
    assert not (hostile / "calls").exists()
    program(tmp_path, {"token": "mine"})
    assert asked(written(tmp_path)).token == "mine", "a path is looked for from the kubeconfig"
