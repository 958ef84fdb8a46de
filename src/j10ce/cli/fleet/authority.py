"""A certificate authority in a folder: ECDSA P-256, keys readable by their owner alone. Needs `cryptography`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from j10ce.daemon.secret_files import write_private
from j10ce.errors import Conflict, Denied, NotFound
from j10ce.manager.access.signing import CertificateWish, Pair, alternatives, issued, new_authority, read_pair, text


class Facts(NamedTuple):
    """What a certificate says of itself."""

    file: str
    subject: str
    names: tuple[str, ...]
    expires: datetime


class Authority:
    """`ca.key` signs, and is needed for nothing else: it may live on another machine than the certificates."""

    def __init__(self, folder: Path, wall: float) -> None:
        self.folder, self._wall = folder, wall
        self.certificate = folder / "ca.crt"

    def create(self, name: str, life_s: float) -> None:
        """Raises Conflict where there is one: everything it has signed would be worth nothing."""
        self._refuse_existing("ca", "it has signed certificates; use another folder")
        made = new_authority(name, life_s, self._wall)
        self._write("ca", made, text(made.certificate))

    def issue(self, file: str, wish: CertificateWish, *, renew: bool) -> None:
        """A fresh key and its certificate; raises Conflict where `file` exists and is not to be renewed."""
        if not renew:
            self._refuse_existing(file, "give --renew to replace it")
        authority = self._load_ca()
        made = issued(wish, authority, self._wall)
        # With its issuer behind it: whoever trusts this file trusts what replaces it, too.
        self._write(file, made, text(made.certificate, authority.certificate))

    def hosts(self, file: str) -> tuple[str, ...]:
        """The names of a certificate that is to be renewed."""
        return alternatives(_read(self.folder / f"{file}.crt"))

    def facts(self) -> list[Facts]:
        certificates = []
        for path in sorted(self.folder.glob("*.crt")):
            made = _read(path)
            expires = made.not_valid_after_utc
            certificates.append(Facts(path.name, made.subject.rfc4514_string(), alternatives(made), expires))
        return certificates

    def _load_ca(self) -> Pair:
        certificate, path = _bytes(self.certificate), self.folder / "ca.key"
        try:
            return read_pair(certificate, path.read_bytes(), str(self.folder / "ca"))
        except FileNotFoundError:
            raise NotFound(f"{path} is not here; run this where the authority's key is kept") from None

    def _refuse_existing(self, file: str, hint: str) -> None:
        for path in (self.folder / f"{file}.crt", self.folder / f"{file}.key"):
            if path.exists():
                raise Conflict(f"{path} exists already; {hint}")

    def _write(self, file: str, made: Pair, chain: str) -> None:
        write_private(self.folder / f"{file}.key", made.private)
        write_private(self.folder / f"{file}.crt", chain, mode=0o644)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no {path}; `j10ce-qos certs init` makes an authority") from None


def _read(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_bytes(path))
    except ValueError:
        raise Denied(f"{path} holds no certificate") from None
