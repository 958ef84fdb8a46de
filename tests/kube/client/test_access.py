"""kubeconfigs and service accounts: what they say is used, and what we do not do is refused by name."""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from j10ce.errors import Denied, Invalid, QosError, Unsupported
from j10ce.kube.access import SYSTEM_NAMESPACE, read_access
from j10ce.kube.kubeconfig import read_kubeconfig
from j10ce.store.schemes import open_store
from tests.lab.kube.pki import CLIENT, Authority

SERVER = "https://10.0.0.1:6443"
INSIDE = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}


def written(folder: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
            {"name": "there", "context": {"cluster": "other"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": f"{SERVER}/", **(cluster or {})}},
            {"name": "other", "cluster": {"server": "http://other"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
    }
    file = folder / "config"
    file.write_text(json.dumps(config))
    return file


@pytest.fixture
def pki(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "pki")
    made.sign("me", "me", usage=CLIENT)
    return made


def test_certificates_stand_in_the_file_or_beside_it(tmp_path: Path, pki: Authority) -> None:
    ca, certificate, key = (pki.folder / name for name in ("ca.crt", "me.crt", "me.key"))
    beside = written(
        tmp_path,
        {"certificate-authority": "pki/ca.crt"},
        {"client-certificate": "pki/me.crt", "client-key": str(key)},
    )
    access = read_kubeconfig(beside)
    assert access == (SERVER, ca.read_text(), True, "", "", None, certificate.read_text(), key.read_text(), None)
    data = {name: b64encode(file.read_bytes()).decode() for name, file in (("c", certificate), ("k", key), ("ca", ca))}
    inside = written(
        tmp_path,
        {"certificate-authority-data": data["ca"]},
        {"client-certificate-data": data["c"], "client-key-data": data["k"]},
    )
    assert read_kubeconfig(inside) == access


def test_a_context_may_be_chosen(tmp_path: Path) -> None:
    assert read_kubeconfig(written(tmp_path), "there").server == "http://other"
    assert read_access(f"kube://{written(tmp_path)}?context=there", {}).server == "http://other"


def test_the_lease_is_where_the_clusters_own_managers_have_theirs(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert read_access(f"kube://{file}", {}).namespace == SYSTEM_NAMESPACE
    assert read_access(f"kube://{file}?namespace=mine", {}).namespace == "mine"


def test_a_user_brings_a_token_or_a_file_with_one(tmp_path: Path) -> None:
    assert read_access(f"kube://{written(tmp_path, user={'token': 'secret'})}", {}).token == "secret"
    file = written(tmp_path, user={"tokenFile": "token"})
    assert read_access(f"kube://{file}", {}).token_file == tmp_path / "token"


def test_tls_is_checked_unless_the_file_says_otherwise(tmp_path: Path, pki: Authority) -> None:
    trusting = read_access(f"kube://{written(tmp_path, {'certificate-authority': str(pki.file)})}", {})
    assert trusting.tls
    assert trusting.tls.verify_mode is ssl.CERT_REQUIRED
    cluster = {"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"}
    blind = read_access(f"kube://{written(tmp_path, cluster)}", {})
    assert blind.tls
    assert (blind.tls.verify_mode, blind.server_name) == (ssl.CERT_NONE, "kubernetes")


@pytest.mark.parametrize(
    ("user", "feature"),
    [
        ({"auth-provider": {"name": "oidc"}}, "auth providers"),
        ({"username": "me", "password": "secret"}, "passwords"),
        ({"as": "someone"}, "impersonation"),
    ],
)
def test_what_would_have_to_be_pretended_is_refused(tmp_path: Path, user: dict[str, Any], feature: str) -> None:
    with pytest.raises(Unsupported, match=rf"{feature} in .*config: users: user .*kubectl create token") as refused:
        read_kubeconfig(written(tmp_path, user=user))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        pytest.param("a: [", Invalid, "not YAML", id="no YAML"),
        pytest.param("[]", Invalid, "has no current-context", id="no mapping"),
        pytest.param("{current-context: x, contexts: []}", Invalid, "'x': not among them", id="no context"),
        pytest.param(
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {}}]}",
            Invalid,
            "clusters: cluster: has no server",
            id="no server",
        ),
    ],
)
def test_a_broken_file_says_where(tmp_path: Path, text: str, error: type[QosError], words: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(error, match=words):
        read_kubeconfig(tmp_path / "config")


def test_files_that_are_missing_or_no_certificates_are_named(tmp_path: Path) -> None:
    with pytest.raises(Denied, match=r"cannot read .*/missing: No such file"):
        read_access(f"kube://{tmp_path / 'missing'}", {})
    with pytest.raises(Denied, match=r"cannot read .*/ca.crt"):
        read_access(f"kube://{written(tmp_path, {'certificate-authority': 'ca.crt'})}", {})
    with pytest.raises(Invalid, match="not base64"):
        read_kubeconfig(written(tmp_path, {"certificate-authority-data": "a"}))
    (tmp_path / "ca.crt").write_text("rubbish")
    with pytest.raises(Denied, match="cannot use the certificates of the user of"):
        read_access(f"kube://{written(tmp_path, {'certificate-authority': 'ca.crt'})}", {})


def test_a_pod_uses_its_service_account(tmp_path: Path, pki: Authority) -> None:
    (tmp_path / "ca.crt").write_bytes(pki.file.read_bytes())
    (tmp_path / "namespace").write_text("j10ce-here")
    access = read_access("kube:", INSIDE, tmp_path)
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "j10ce-here")
    assert access.token_file == tmp_path / "token"


def test_outside_of_a_pod_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="kube:///path/to/kubeconfig"):
        read_access("kube:", {}, tmp_path)
    with pytest.raises(Denied, match="automountServiceAccountToken"):
        read_access("kube:", INSIDE, tmp_path)


@pytest.mark.parametrize("url", ["kube:relative", "kube:///x?colour=red", "kube:?context=c", "kube://host/x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(Invalid, match="write kube: inside a pod"):
        open_store(url, lambda: 0.0)
