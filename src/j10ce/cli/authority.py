"""A certificate authority in a folder: ECDSA P-256, keys readable by their owner alone. Needs `cryptography`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from j10ce.errors import Conflict, Denied, Finding, Invalid, NotFound
from j10ce.manager.private import write_private

EARLIER_S: Final = 300.0  # clocks differ: a certificate counts from a little before it was made
UNUSED: Final = dict.fromkeys(
    ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
    False,
)


class Wish(NamedTuple):
    """What a certificate is for: a server's names, or a client's name and role."""

    name: str
    life_s: float
    hosts: tuple[str, ...] = ()
    role: str = ""


class Facts(NamedTuple):
    """What a certificate says of itself."""

    file: str
    subject: str
    names: tuple[str, ...]
    expires: datetime


class Authority:
    """`ca.key` signs, and is needed for nothing else: it may live on another machine than the certificates."""

    def __init__(self, folder: Path, wall: float) -> None:
        self.folder, self._now = folder, datetime.fromtimestamp(int(wall), UTC)
        self.certificate = folder / "ca.crt"

    def create(self, name: str, life_s: float) -> None:
        """Raises Conflict where there is one: everything it has signed would be worth nothing."""
        self._refuse_existing("ca", "it has signed certificates; use another folder")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = (
            self._begun(subject, subject, key.public_key(), life_s)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        self._write("ca", key, [made])

    def issue(self, file: str, wish: Wish, *, renew: bool) -> None:
        """A fresh key and its certificate; raises Conflict where `file` exists and is not to be renewed."""
        if not renew:
            self._refuse_existing(file, "give --renew to replace it")
        authority, signer = self._load_ca()
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if wish.role else ExtendedKeyUsageOID.SERVER_AUTH
        begun = (
            self._begun(_subject(wish), authority.subject, key.public_key(), wish.life_s)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(_issuer(authority), critical=False)
        )
        if wish.hosts:
            begun = begun.add_extension(x509.SubjectAlternativeName(list(_names(wish.hosts))), critical=False)
        # With its issuer behind it: whoever trusts this file trusts what replaces it, too.
        self._write(file, key, [begun.sign(signer, hashes.SHA256()), authority])

    def hosts(self, file: str) -> tuple[str, ...]:
        """The names of a certificate that is to be renewed."""
        return _alternatives(_read(self.folder / f"{file}.crt"))

    def facts(self) -> list[Facts]:
        found = []
        for path in sorted(self.folder.glob("*.crt")):
            made = _read(path)
            expires = made.not_valid_after_utc
            found.append(Facts(path.name, made.subject.rfc4514_string(), _alternatives(made), expires))
        return found

    def _begun(
        self, subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, life_s: float
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(seconds=EARLIER_S))
            .not_valid_after(self._now + timedelta(seconds=life_s))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )

    def _load_ca(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        authority, path = _read(self.certificate), self.folder / "ca.key"
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), None)
        except FileNotFoundError:
            raise NotFound(f"{path} is not here; run this where the authority's key is kept") from None
        except ValueError:
            raise Denied(f"{path} holds no private key") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != authority.public_key():
            raise Denied(f"{path} is not the key of {self.certificate}")
        return authority, key

    def _refuse_existing(self, file: str, hint: str) -> None:
        for path in (self.folder / f"{file}.crt", self.folder / f"{file}.key"):
            if path.exists():
                raise Conflict(f"{path} exists already; {hint}")

    def _write(self, file: str, key: ec.EllipticCurvePrivateKey, chain: Iterable[x509.Certificate]) -> None:
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(self.folder / f"{file}.key", private.decode())
        public = b"".join(made.public_bytes(serialization.Encoding.PEM) for made in chain)
        write_private(self.folder / f"{file}.crt", public.decode(), mode=0o644)


def _read(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no {path}; `j10ce-qos certs init` makes an authority") from None
    except ValueError:
        raise Denied(f"{path} holds no certificate") from None


def _subject(wish: Wish) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, wish.name[:64])]
    if wish.role:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, f"j10ce:{wish.role}"))
    return x509.Name(parts)


def _names(hosts: Iterable[str]) -> Iterator[x509.GeneralName]:
    for host in hosts:
        try:
            yield x509.IPAddress(ip_address(host))
        except ValueError:
            yield x509.DNSName(_dns(host))


def _dns(host: str) -> str:
    if not host.isascii() or not host or any(c.isspace() or c in "/:@" for c in host):
        raise Invalid([Finding("--host", host, "neither a DNS name nor an address", "write cp1.example or 10.0.0.1")])
    return host


def _alternatives(made: x509.Certificate) -> tuple[str, ...]:
    try:
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)


def _issuer(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    known = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **UNUSED)
