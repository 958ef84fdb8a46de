"""Certificates over gRPC: the server's own, which follow their files, and those that callers are known by."""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path

import grpc
from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from j10ce.errors import Denied
from j10ce.manager.access.tls import load_certificate, named
from j10ce.manager.access.tokens import Ticket


class Certificate:
    """A certificate and its key, read again for every connection: a renewal needs no restart.

    With `client_ca` every client has to show a certificate of that authority: gRPC cannot leave it to them.
    """

    def __init__(self, cert: Path, key: Path, client_ca: Path | None = None) -> None:
        self._cert, self._key = cert, key
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), cert, key)
        self._held = (key.read_bytes(), cert.read_bytes())
        self._roots = client_ca.read_bytes() if client_ca else None

    def credentials(self) -> grpc.ServerCredentials:
        held = self._configuration(self._held)
        # The stubs do not know that None means: no change.
        return grpc.dynamic_ssl_server_credentials(held, self.renewed, self._roots is not None)  # type: ignore[arg-type]

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """What is in the files, if it is another pair and a whole one: a renewal writes two files."""
        try:
            pair = (self._key.read_bytes(), self._cert.read_bytes())
            if pair == self._held:
                return None
            load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._cert, self._key)
        except (OSError, Denied):
            return None
        self._held = pair
        return self._configuration(pair)

    def _configuration(self, pair: tuple[bytes, bytes]) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([pair], self._roots)


@lru_cache(1024)
def certified_by(pem: bytes) -> Ticket | None:
    """Whom a verified client certificate names, as over REST."""
    certificate = load_pem_x509_certificate(pem)
    subject = {part.oid: str(part.value) for part in certificate.subject}
    ends = certificate.not_valid_after_utc.timestamp()
    return named(subject.get(NameOID.COMMON_NAME, ""), subject.get(NameOID.ORGANIZATION_NAME, ""), ends)
