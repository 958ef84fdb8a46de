"""`etcd://host:port[,host:port…][/prefix]`, or `etcds://` for TLS; what else a connection needs is in the query."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from j10ce.errors import Denied, Finding, Invalid

FORM: Final = "write etcd://host:2379[,host:2379…][/prefix], or etcds:// with ?ca=/file&cert=/file&key=/file"
OPTIONS: Final = ("ca", "cert", "key", "user", "password-file")
PREFIX: Final = "/j10ce"


class EtcdAddress(NamedTuple):
    endpoints: tuple[str, ...]  # http://host:port
    prefix: str = PREFIX
    tls: ssl.SSLContext | None = None
    user: str = ""
    password: str = ""


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
    web = "https" if scheme == "etcds" else "http"
    return EtcdAddress(
        tuple(f"{web}://{host}" for host in hosts.split(",")),
        f"/{prefix.strip('/')}" if prefix.strip("/") else PREFIX,
        _context(options) if scheme == "etcds" else None,
        options.get("user", ""),
        _password(options.get("password-file", "")),
    )


def _is_address(host: str) -> bool:
    name, _, port = host.rpartition(":")
    return bool(name) and port.isdecimal() and 0 < int(port) < 65536


def _context(options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options["key"])
    except (OSError, ssl.SSLError) as e:
        files = ", ".join(options[name] for name in ("ca", "cert", "key") if name in options)
        raise Denied(f"cannot use {files} for TLS: {e.strerror or e}") from None
    return context


def _password(file: str) -> str:
    try:
        return Path(file).read_text().rstrip("\n") if file else ""
    except OSError as e:
        raise Denied(f"cannot read {file}: {e.strerror}") from None
