"""Certificates in memory: ECDSA P-256, signed by an authority. Pure but for the randomness of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from j10ce.errors import Denied, Finding, Invalid

EARLIER_S: Final = 300.0  # clocks differ: a certificate counts from a little before it was made
UNUSED: Final = dict.fromkeys(
    ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
    False,
)
PEM: Final = serialization.Encoding.PEM


class CertificateWish(NamedTuple):
    """What a certificate is for: a server's names, or a client's name and role."""

    name: str
    life_s: float
    hosts: tuple[str, ...] = ()
    role: str = ""


class Pair(NamedTuple):
    """A certificate and the key that it speaks for."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def private(self) -> str:
        return self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def new_authority(name: str, life_s: float, wall: float) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begun = (
        _begun(subject, subject, key.public_key(), life_s, wall)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return Pair(begun.sign(key, hashes.SHA256()), key)


def issued(wish: CertificateWish, authority: Pair, wall: float) -> Pair:
    """A fresh key and its certificate."""
    key, signer = ec.generate_private_key(ec.SECP256R1()), authority.certificate
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if wish.role else ExtendedKeyUsageOID.SERVER_AUTH
    begun = (
        _begun(_subject(wish), signer.subject, key.public_key(), wish.life_s, wall)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(_issuer(signer), critical=False)
    )
    if wish.hosts:
        begun = begun.add_extension(x509.SubjectAlternativeName(list(_names(wish.hosts))), critical=False)
    return Pair(begun.sign(authority.key, hashes.SHA256()), key)


def read_pair(certificate: bytes, key: bytes, where: str) -> Pair:
    """Raises Denied where they are no such thing, or do not belong together."""
    try:
        public, private = x509.load_pem_x509_certificate(certificate), serialization.load_pem_private_key(key, None)
    except ValueError:
        raise Denied(f"{where} holds no certificate with a private key") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.public_key() != public.public_key():
        raise Denied(f"the key of {where} is not that of its certificate")
    return Pair(public, private)


def text(*chain: x509.Certificate) -> str:
    return "".join(made.public_bytes(PEM).decode() for made in chain)


def alternatives(made: x509.Certificate) -> tuple[str, ...]:
    """The names of a server's certificate."""
    try:
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)


def _begun(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, life_s: float, wall: float
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(int(wall), UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(seconds=EARLIER_S))
        .not_valid_after(now + timedelta(seconds=life_s))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _subject(wish: CertificateWish) -> x509.Name:
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


def _issuer(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    known = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **UNUSED)
