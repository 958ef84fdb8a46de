"""A certificate authority of a test, and what it signs."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

UNUSED = dict.fromkeys(
    ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
    False,
)
SIGNS = x509.KeyUsage(digital_signature=False, key_cert_sign=True, crl_sign=True, **UNUSED)


class Files(NamedTuple):
    cert: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = name("a test's authority")
        builder = certificate(self._name, self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(SIGNS, critical=True)
        known = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(known, critical=False)
        self._cert = builder.sign(self._key, hashes.SHA256())
        self.file = folder / "ca.pem"
        self.file.write_bytes(self._cert.public_bytes(serialization.Encoding.PEM))

    def sign(self, who: str, *, common: str = "") -> Files:
        """Good for both ends of a connection to 127.0.0.1: etcd's gateway is a client of its own server.

        etcd takes the common name for the user; its JSON gateway refuses clients that have one.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())  # Python 3.13 asks for it
        builder = certificate(name(common), self._name, key).add_extension(address, critical=not common)
        builder = builder.add_extension(issuer, critical=False)
        signed = builder.add_extension(uses, critical=False).sign(self._key, hashes.SHA256())
        files = Files(self._folder / f"{who}.pem", self._folder / f"{who}.key")
        files.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        files.key.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
        return files


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])


def certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    today = datetime.now(UTC)  # noqa: TID251  certificates are checked against the machine's clock
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(today - timedelta(days=1)).not_valid_after(today + timedelta(days=1))
