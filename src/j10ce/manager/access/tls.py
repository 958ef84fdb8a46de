"""TLS of the API: one context for all listeners, whose certificates follow their files."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from j10ce.errors import Denied
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.identity import Role, caller_of

log = structlog.get_logger()
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; all of 1.3 are of this kind
ORGANISATION: Final = "j10ce:"  # before the role, in a client certificate
LOOK_S: Final = 2.0


def server_context(cert: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """With a certificate to serve; raises Denied."""
    context = bare_context(client_ca)
    load_certificate(context, cert, key)
    return context


def bare_context(client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and up, forward secrecy only; with `client_ca` a client may show a certificate. Raises Denied."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as e:
            raise Denied(f"cannot use the client CA {client_ca}: {e.strerror or e}") from None
    return context


def load_certificate(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Connections from here on are given this certificate; raises Denied, and the one before stays."""
    if key.exists() and (mode := key.stat().st_mode) & 0o027:
        raise Denied(f"{key} may be read by others (mode {mode & 0o777:04o}); chmod 600 it and renew the certificate")
    try:
        # Tried on a context of its own: half a renewal must not disturb the one that serves.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as e:
        raise Denied(f"cannot use the certificate {cert} with the key {key}: {e.strerror or e}") from None


def certified(peer: Mapping[str, Any] | None) -> Ticket | None:
    """Whom a verified client certificate names: CN is the name, O is `j10ce:<role>`; a node's name is its node's."""
    if not peer:
        return None
    subject = {key: value for part in peer.get("subject", ()) for key, value in part}
    ends = float(ssl.cert_time_to_seconds(peer["notAfter"]))
    return named(subject.get("commonName", ""), subject.get("organizationName", ""), ends)


def named(name: str, group: str, expires: float) -> Ticket | None:
    """Whom the CN and O of a verified certificate mean; None: nobody that we know."""
    try:
        role = Role(group.removeprefix(ORGANISATION)) if group.startswith(ORGANISATION) else None
    except ValueError:
        role = None
    if not name or role is None:
        return None
    caller = caller_of(name, role, name if role is Role.NODE else "")
    return Ticket(caller, "", b"", expires=expires) if caller else None


async def follow_files(reloads: Mapping[tuple[Path, ...], Callable[[], None]], asked: asyncio.Event) -> None:
    """Call what belongs to files whenever one of them has changed, and all of it when `asked`; for ever."""
    seen = {files: _facts(files) for files in reloads}
    while True:
        try:
            async with asyncio.timeout(LOOK_S):
                await asked.wait()
        except TimeoutError:
            pass
        everything = asked.is_set()
        asked.clear()
        for files, reload in reloads.items():
            facts = _facts(files)
            if everything or facts != seen[files]:
                seen[files] = facts
                reload()


def reload_certificate(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """A pair that does not fit is logged, and the one before stays: a renewal writes two files."""
    try:
        load_certificate(context, cert, key)
    except Denied as e:
        log.error("certificate.refused", error=str(e))
    else:
        log.info("certificate.load", file=str(cert))


def _facts(files: tuple[Path, ...]) -> tuple[object, ...]:
    return tuple(_fact(file) for file in files)


def _fact(file: Path) -> object:
    try:
        facts = file.stat()
    except OSError as e:
        return e.errno
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size, facts.st_mode
