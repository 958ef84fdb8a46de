"""The certificates of the webhooks, made by ourselves, and how they are renewed. Pure.

The authority changes in three steps, an hour apart, so that everyone trusts the next one before it signs, and the
former one until nobody shows its signature any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.errors import Denied
from j10ce.manager.signing import EARLIER_S, Pair, Wish, alternatives, issued, new_authority, read_pair, text

NAME: Final = "j10ce-qos"
AUTHORITY_S: Final = 3 * 365 * 86_400.0
SERVING_S: Final = 90 * 86_400.0
OVERLAP_S: Final = 3_600.0
SPENT: Final = 2 / 3  # of its life, after which a certificate is renewed


class Material(NamedTuple):
    """What managers share."""

    authority: Pair
    serving: Pair
    coming: Pair | None = None  # an authority that is trusted, and signs nothing yet
    former: Pair | None = None  # one that signs nothing any more, and is still trusted

    @property
    def bundle(self) -> str:
        """What callers have to trust."""
        pairs = (self.authority, self.coming, self.former)
        return text(*(pair.certificate for pair in pairs if pair is not None))

    @property
    def chain(self) -> str:
        return text(self.serving.certificate)


class Lives(NamedTuple):
    authority_s: float = AUTHORITY_S
    serving_s: float = SERVING_S
    overlap_s: float = OVERLAP_S


LIVES: Final = Lives()


def renewed(has: Material | None, hosts: tuple[str, ...], wall: float, lives: Lives = LIVES) -> Material:
    """What there should be at this moment; the same as there is, most of the time."""
    if has is None or _ends(has.authority) <= wall:
        authority = new_authority(NAME, lives.authority_s, wall)
        return Material(authority, _serving(hosts, authority, wall, lives))
    if has.coming is None and has.former is None and _spent(has.authority, wall):
        has = has._replace(coming=new_authority(NAME, lives.authority_s, wall))
    elif has.coming is not None and wall >= _made(has.coming) + lives.overlap_s:
        has = Material(has.coming, _serving(hosts, has.coming, wall, lives), former=has.authority)
    elif has.former is not None and wall >= _made(has.serving) + lives.overlap_s:
        has = has._replace(former=None)
    if _spent(has.serving, wall) or set(alternatives(has.serving.certificate)) != set(hosts):
        has = has._replace(serving=_serving(hosts, has.authority, wall, lives))
    return has


def told(has: Material) -> dict[str, str]:
    """As the data of a Secret, not encoded yet."""
    pairs = {"ca": has.authority, "tls": has.serving, "coming-ca": has.coming, "former-ca": has.former}
    found = {name: pair for name, pair in pairs.items() if pair is not None}
    texts = {f"{name}.crt": text(pair.certificate) for name, pair in found.items()}
    return texts | {f"{name}.key": pair.private for name, pair in found.items()} | {"bundle.crt": has.bundle}


def read(data: Mapping[str, bytes], where: str) -> Material | None:
    """None where nothing usable is kept; raises Denied for what was meant to be and is broken."""
    pairs = {name: _pair(data, name, where) for name in ("ca", "tls", "coming-ca", "former-ca")}
    authority, serving = pairs["ca"], pairs["tls"]
    if authority is None or serving is None:
        return None
    if serving.certificate.issuer != authority.certificate.subject:
        raise Denied(f"the certificate of {where} is not of its authority")
    return Material(authority, serving, pairs["coming-ca"], pairs["former-ca"])


def _pair(data: Mapping[str, bytes], name: str, where: str) -> Pair | None:
    certificate, key = data.get(f"{name}.crt"), data.get(f"{name}.key")
    return read_pair(certificate, key, f"{name} in {where}") if certificate and key else None


def _serving(hosts: tuple[str, ...], authority: Pair, wall: float, lives: Lives) -> Pair:
    """Never beyond the life of who signs it."""
    life_s = min(lives.serving_s, _ends(authority) - wall)
    return issued(Wish(hosts[0], life_s, hosts), authority, wall)


def _made(pair: Pair) -> float:
    return pair.certificate.not_valid_before_utc.timestamp() + EARLIER_S


def _ends(pair: Pair) -> float:
    return pair.certificate.not_valid_after_utc.timestamp()


def _spent(pair: Pair, wall: float) -> bool:
    return wall >= _made(pair) + SPENT * (_ends(pair) - _made(pair))
