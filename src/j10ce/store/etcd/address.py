"""`etcd://host:port[,host:port…][/prefix]`, or `etcds://` for TLS; what else a connection needs is in the query."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from j10ce.errors import Denied, Finding, Invalid
from j10ce.model.quantity import Quantity

FORM: Final = "write etcd://host:2379[,host:2379…][/prefix], or etcds:// with ?ca=/file&cert=/file&key=/file"
OPTIONS: Final = ("ca", "cert", "key", "user", "password-file", "quota")
QUOTA: Final = 2 << 30  # etcd's own default
PREFIX: Final = "/j10ce"


class Tls(NamedTuple):
    """All in PEM."""

    authorities: bytes
    certificate: bytes | None = None
    key: bytes | None = None


class EtcdAddress(NamedTuple):
    endpoints: tuple[str, ...]  # host:port
    prefix: str = PREFIX
    tls: Tls | None = None
    user: str = ""
    password: str = ""
    quota: int = QUOTA  # bytes; etcd tells its own since 3.6


def read_address(url: str) -> EtcdAddress:
    """Raises Invalid with all findings, and Denied for a file that cannot be read."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    hosts, _, prefix = rest.partition("/")
    options = dict(parse_qsl(query, keep_blank_values=True))
    findings = [Finding("--store", host, "not host:port", FORM) for host in hosts.split(",") if not _is_address(host)]
    findings += [
        Finding("--store", name, "unknown option", "use " + ", ".join(OPTIONS)) for name in options.keys() - OPTIONS
    ]
    if scheme == "etcd" and options.keys() & {"ca", "cert", "key"}:
        findings.append(Finding("--store", url, "TLS options without TLS", "write etcds://"))
    if ("cert" in options) != ("key" in options):
        findings.append(Finding("--store", url, "cert and key belong together", "give both"))
    if ("user" in options) != ("password-file" in options):
        findings.append(Finding("--store", url, "user and password-file belong together", "give both"))
    if findings:
        raise Invalid(findings, "argument")
    return EtcdAddress(
        tuple(hosts.split(",")),
        f"/{prefix.strip('/')}" if prefix.strip("/") else PREFIX,
        _tls(options) if scheme == "etcds" else None,
        options.get("user", ""),
        _password(options.get("password-file", "")),
        _quota(options["quota"]) if "quota" in options else QUOTA,
    )


def _quota(text: str) -> int:
    """As etcd's --quota-backend-bytes says it."""
    quota = Quantity.parse(text)
    if quota.percent or not quota.amount:
        raise Invalid([Finding("--store", text, "not a quota", "write what etcd has, such as quota=8Gi")], "argument")
    return quota.bytes()


def _is_address(host: str) -> bool:
    name, _, port = host.rpartition(":")
    return bool(name) and port.isdecimal() and 0 < int(port) < 65536


def _tls(options: dict[str, str]) -> Tls:
    files = {name: Path(options[name]) for name in ("ca", "cert", "key") if name in options}
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options["key"])
        held = {name: file.read_bytes() for name, file in files.items()}
    except (OSError, ssl.SSLError) as e:
        raise Denied(f"cannot use {', '.join(map(str, files.values()))} for TLS: {e.strerror or e}") from None
    return Tls(held.get("ca") or _system_authorities(), held.get("cert"), held.get("key"))


def _system_authorities() -> bytes:
    """Those that this machine trusts; gRPC would bring its own."""
    known = ssl.get_default_verify_paths()
    files = [Path(known.cafile)] if known.cafile else sorted(Path(known.capath or "/dev/null").glob("*.[0-9]"))
    return b"\n".join(file.read_bytes() for file in files)


def _password(file: str) -> str:
    try:
        return Path(file).read_text().rstrip("\n") if file else ""
    except OSError as e:
        raise Denied(f"cannot read {file}: {e.strerror}") from None
