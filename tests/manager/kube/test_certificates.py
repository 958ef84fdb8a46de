"""Certificates through the years: never a moment at which what is served is not trusted by what was known before."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from j10ce.errors import Denied
from j10ce.manager.kube.certificates import Lives, Material, read, renewed, secret_data

HOSTS = ("j10ce-controller-manager.j10ce-system.svc", "127.0.0.1")
LIVES = Lives(authority_s=9_000.0, serving_s=900.0, overlap_s=60.0)
BEGIN = 1_700_000_000.0
LOOK_S = 10.0


def signed_by(material: Material, trusted: str) -> bool:
    def signs(authority: x509.Certificate) -> bool:
        try:
            material.serving.certificate.verify_directly_issued_by(authority)
        except InvalidSignature:
            return False
        return True

    return any(map(signs, x509.load_pem_x509_certificates(trusted.encode())))


def test_whoever_trusts_the_bundle_of_a_minute_ago_trusts_what_is_served() -> None:
    material = renewed(None, HOSTS, BEGIN, LIVES)
    bundles, authorities, servings = [material.bundle], set(), set()
    for step in range(1, 3_000):
        wall = BEGIN + step * LOOK_S
        material = renewed(material, HOSTS, wall, LIVES)
        ends = material.serving.certificate.not_valid_after_utc
        assert ends > datetime.fromtimestamp(wall, UTC)
        assert signed_by(material, bundles[-5:][0]), f"{step * LOOK_S:g} s"
        authorities.add(material.authority.certificate.serial_number)
        servings.add(material.serving.certificate.serial_number)
        bundles.append(material.bundle)
    assert len(authorities) > 3
    assert len(servings) > 30


def test_nothing_is_renewed_before_its_time() -> None:
    material = renewed(None, HOSTS, BEGIN)
    assert renewed(material, HOSTS, BEGIN + 86_400.0) == material


def test_another_name_needs_another_certificate_of_the_same_authority() -> None:
    material = renewed(None, HOSTS, BEGIN)
    other = renewed(material, ("elsewhere",), BEGIN + 1)
    assert other.authority == material.authority
    assert other.serving != material.serving


def test_what_is_kept_in_a_secret_is_read_again() -> None:
    material = renewed(None, HOSTS, BEGIN, LIVES)
    for wall in (BEGIN, BEGIN + 6_100.0, BEGIN + 6_200.0):  # alone, with the next authority, with the former one
        material = renewed(material, HOSTS, wall, LIVES)
        again = read({name: text.encode() for name, text in secret_data(material).items()}, "here")
        assert again is not None
        assert secret_data(again) == secret_data(material)


def test_an_empty_secret_holds_nothing() -> None:
    assert read({}, "here") is None


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.key"])
def test_a_broken_secret_is_reported(name: str) -> None:
    data = {key: text.encode() for key, text in secret_data(renewed(None, HOSTS, BEGIN)).items()}
    with pytest.raises(Denied, match="here"):
        read({**data, name: b"rubbish"}, "here")


def test_an_authority_whose_time_is_over_is_replaced_at_once() -> None:
    material = renewed(None, HOSTS, BEGIN, LIVES)
    later = renewed(material, HOSTS, BEGIN + 100_000.0, LIVES)
    assert later.authority != material.authority
    assert signed_by(later, later.bundle)
