"""How to reach an API server: `kube:` from inside a pod, or `kube:///path/to/kubeconfig[?context=…&namespace=…]`."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from j10ce.errors import Denied, Finding, Invalid, Unsupported
from j10ce.kube.exec_credential import ExecPlugin
from j10ce.kube.kubeconfig import Kubeconfig, once, read_kubeconfig

FORM: Final = "write kube: inside a pod, or kube:///path/to/kubeconfig[?context=NAME&namespace=NAME]"
OPTIONS: Final = ("context", "namespace")
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SYSTEM_NAMESPACE: Final = "j10ce-system"


class KubeAccess(NamedTuple):
    server: str  # https://host:port
    who: str  # whose word it is that we bring, for people
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    token: str = ""
    token_file: Path | None = None
    namespace: str = SYSTEM_NAMESPACE  # where the managers' Lease is
    plugin: ExecPlugin | None = None  # who knows token or certificate


def read_access(
    url: str, environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT, *, wall: Callable[[], float] = once
) -> KubeAccess:
    """Raises Invalid, Denied for files that cannot be read, and Unsupported outside of a pod."""
    rest, _, query = url.removeprefix("kube:").removeprefix("//").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    findings = [Finding("--store", name, "unknown option", FORM) for name in options.keys() - OPTIONS]
    if rest and not rest.startswith("/"):
        findings.append(Finding("--store", url, "not an absolute path", FORM))
    if not rest and "context" in options:
        findings.append(Finding("--store", url, "a context without a kubeconfig", FORM))
    if findings:
        raise Invalid(findings, "argument")
    access = _by_kubeconfig(Path(rest), options.get("context", ""), wall) if rest else _in_cluster(environ, account)
    return access._replace(namespace=options.get("namespace") or access.namespace)


def _in_cluster(environ: Mapping[str, str], account: Path) -> KubeAccess:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise Unsupported("kube:", needs=f"a pod with a service account; {FORM}")
    host = f"[{host}]" if ":" in host else host
    try:
        ca, namespace = (account / "ca.crt").read_text(), (account / "namespace").read_text().strip()
    except OSError as e:
        raise Denied(f"cannot read {e.filename}: {e.strerror}; the pod needs automountServiceAccountToken") from None
    config = Kubeconfig(f"https://{host}:{port}", ca, token_file=account / "token")
    return _access(config, f"the service account of {account}", namespace)


def _by_kubeconfig(path: Path, context: str, wall: Callable[[], float]) -> KubeAccess:
    """The Lease is where the cluster's own managers have theirs, whatever namespace a person works in."""
    try:
        return _access(read_kubeconfig(path, context, wall), f"the user of {path}", SYSTEM_NAMESPACE)
    except OSError as e:
        raise Denied(f"cannot read {e.filename or path}: {e.strerror}") from None


def _access(config: Kubeconfig, who: str, namespace: str) -> KubeAccess:
    tls = _context(config, who) if config.server.startswith("https://") else None
    named = config.server_name, config.token, config.token_file
    return KubeAccess(config.server, who, tls, *named, namespace, config.plugin)


def _context(config: Kubeconfig, who: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=config.ca or None)
        # Python 3.13 asks more of a CA than clusters have been giving theirs for years.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not config.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if config.certificate:
            load_certificate(context, config.certificate, config.key)
    except (OSError, ssl.SSLError) as e:
        raise Denied(f"cannot use the certificates of {who}: {e.strerror or e}") from None
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Of the caller, in PEM. The library takes files only; this one is ours alone, and gone at once."""
    with tempfile.NamedTemporaryFile("w", prefix="j10ce-", suffix=".pem") as file:
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        context.load_cert_chain(file.name)
