"""Throw-away certificates for the control planes of tests."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
LIFE = datetime.timedelta(days=30)


class Authority:
    """A CA whose files, and those of what it signs, lie in one folder."""

    def __init__(self, folder: Path, name: str = "lab-ca") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, ())
        usage = x509.BasicConstraints(ca=True, path_length=None)
        self._write("ca", self._key, self._builder(self._name, self._key).add_extension(usage, critical=True))

    @property
    def file(self) -> Path:
        return self.folder / "ca.crt"

    def sign(
        self,
        file: str,
        name: str,
        *,
        groups: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
        usage: x509.ObjectIdentifier = SERVER,
    ) -> tuple[Path, Path]:
        """(certificate, key) of a server or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_subject(name, groups), key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        return self._write(file, key, builder)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)  # noqa: TID251
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(begin).not_valid_after(begin + LIFE)

    def _write(self, file: str, key: ec.EllipticCurvePrivateKey, builder: x509.CertificateBuilder) -> tuple[Path, Path]:
        signed, place = builder.sign(self._key, hashes.SHA256()), self.folder / f"{file}.key"
        place.touch(0o600)
        pem = serialization.Encoding.PEM
        kind = serialization.PrivateFormat.PKCS8
        place.write_bytes(key.private_bytes(pem, kind, serialization.NoEncryption()))
        (self.folder / f"{file}.crt").write_bytes(signed.public_bytes(pem))
        return self.folder / f"{file}.crt", place


def _subject(name: str, groups: tuple[str, ...]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
