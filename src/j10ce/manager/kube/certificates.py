"""The certificates of webhooks and schedulers, made by ourselves, and how they are renewed. Pure.

The authority changes in three steps, a month apart, so that everyone trusts the next one before it signs, and the
former one until nobody shows its signature any more: a scheduler reads whom to trust when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.errors import Denied
from j10ce.manager.access.signing import (
    EARLIER_S,
    CertificateWish,
    Pair,
    alternatives,
    issued,
    new_authority,
    read_pair,
    text,
)

NAME: Final = "j10ce-qos"
SCHEDULER: Final = "j10ce-scheduler"
DAY_S: Final = 86_400.0
AUTHORITY_S: Final = 10 * 365 * DAY_S
SERVING_S: Final = 90 * DAY_S
CLIENT_S: Final = 365 * DAY_S
OVERLAP_S: Final = 30 * DAY_S
SPENT: Final = 2 / 3  # of its life, after which a certificate is renewed


class Material(NamedTuple):
    """What managers share."""

    authority: Pair
    serving: Pair
    coming: Pair | None = None  # an authority that is trusted, and signs nothing yet
    former: Pair | None = None  # one that signs nothing any more, and is still trusted
    client: Pair | None = None  # what schedulers show; None where it is still to be made

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
    client_s: float = CLIENT_S


LIVES: Final = Lives()
NAMES: Final = ("ca", "tls", "coming-ca", "former-ca", "client")  # of a Material's parts, in its Secret


def renewed(has: Material | None, hosts: tuple[str, ...], wall: float, lives: Lives = LIVES) -> Material:
    """What there should be at this moment; the same as there is, most of the time."""
    if has is None or ends(has.authority) <= wall:
        authority = new_authority(NAME, lives.authority_s, wall)
        return _signed(Material(authority, _serving(hosts, authority, wall, lives)), wall, lives)
    if has.coming is None and has.former is None and _spent(has.authority, wall):
        has = has._replace(coming=new_authority(NAME, lives.authority_s, wall))
    elif has.coming is not None and wall >= _made(has.coming) + lives.overlap_s:
        has = Material(has.coming, _serving(hosts, has.coming, wall, lives), former=has.authority)
    elif has.former is not None and wall >= _made(has.serving) + lives.overlap_s:
        has = has._replace(former=None)
    if _spent(has.serving, wall) or set(alternatives(has.serving.certificate)) != set(hosts):
        has = has._replace(serving=_serving(hosts, has.authority, wall, lives))
    return _signed(has, wall, lives)


def _signed(has: Material, wall: float, lives: Lives) -> Material:
    """With a client certificate that has not spent its life."""
    if has.client is not None and not _spent(has.client, wall):
        return has
    life_s = min(lives.client_s, ends(has.authority) - wall)
    return has._replace(client=issued(CertificateWish(SCHEDULER, life_s, role="viewer"), has.authority, wall))


def secret_data(has: Material) -> dict[str, str]:
    """As the data of a Secret, not encoded yet."""
    pairs = dict(zip(NAMES, has, strict=True))
    present = {name: pair for name, pair in pairs.items() if pair is not None}
    texts = {f"{name}.crt": text(pair.certificate) for name, pair in present.items()}
    return texts | {f"{name}.key": pair.private for name, pair in present.items()} | {"bundle.crt": has.bundle}


def read(data: Mapping[str, bytes], where: str) -> Material | None:
    """None where nothing usable is kept; raises Denied for what was meant to be and is broken."""
    authority, serving, *others = (_pair(data, name, where) for name in NAMES)
    if authority is None or serving is None:
        return None
    if serving.certificate.issuer != authority.certificate.subject:
        raise Denied(f"the certificate of {where} is not of its authority")
    return Material(authority, serving, *others)


def _pair(data: Mapping[str, bytes], name: str, where: str) -> Pair | None:
    certificate, key = data.get(f"{name}.crt"), data.get(f"{name}.key")
    return read_pair(certificate, key, f"{name} in {where}") if certificate and key else None


def _serving(hosts: tuple[str, ...], authority: Pair, wall: float, lives: Lives) -> Pair:
    """Never beyond the life of who signs it."""
    life_s = min(lives.serving_s, ends(authority) - wall)
    return issued(CertificateWish(hosts[0], life_s, hosts), authority, wall)


def _made(pair: Pair) -> float:
    return pair.certificate.not_valid_before_utc.timestamp() + EARLIER_S


def ends(pair: Pair) -> float:
    """Seconds since 1970."""
    return pair.certificate.not_valid_after_utc.timestamp()


def _spent(pair: Pair, wall: float) -> bool:
    return wall >= _made(pair) + SPENT * (ends(pair) - _made(pair))
