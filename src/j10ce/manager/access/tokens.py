"""Bearer tokens: `j10ce.NAME.SECRET`. The name finds the credential, the hash of the secret recognises the token."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import structlog
from msgspec import UNSET, UnsetType

from j10ce.manager.identity import Caller, Role, caller_of
from j10ce.model.kinds import Credential, CredentialSpec
from j10ce.model.text.secrets import OURS
from j10ce.policy.validation import credential
from j10ce.store.mirror import Mirror
from j10ce.store.store import Store

log = structlog.get_logger()
PREFIX: Final = "j10ce."
OWNER: Final = Caller(credential.OWNER, Role.ADMIN)  # whoever can read the token file that `up` writes
SECRET_BYTES: Final = 32
TOKEN: Final = re.compile(OURS)


def make(name: str) -> tuple[str, str]:
    """(token, hash): the one is shown once, the other is kept."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return f"{PREFIX}{name}.{secret}", hash_of(secret)


def hash_of(secret: str) -> str:
    """A plain hash is enough: 256 random bits cannot be guessed, however fast the guesses."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}"


def redact(text: str) -> str:
    """Without anything that looks like a token of ours, or the hash of one."""
    return credential.HASH.sub("(redacted)", TOKEN.sub("(redacted)", text))


class KeyringEntry(NamedTuple):
    """A credential as the check needs it; a moment is seconds since the epoch."""

    caller: Caller
    digest: bytes
    expires: float = math.inf
    former: bytes = b""
    former_expires: float = 0.0

    def accepts(self, digest: bytes, wall: float) -> bool:
        if wall >= self.expires:
            return False
        present = hmac.compare_digest(self.digest, digest)
        return present or (wall < self.former_expires and hmac.compare_digest(self.former, digest))


class Ticket(NamedTuple):
    """A caller that was recognised, and by what: a long answer asks again whether it still holds."""

    caller: Caller
    name: str  # of the credential; empty for the owner's token and for a client certificate
    digest: bytes  # empty for a client certificate
    expires: float = math.inf


class Keyring:
    """Every credential in force: the owner's token, those of the auth file, and the Credential objects.

    A name that stands in the auth file goes before an object of the same name.
    """

    def __init__(self, store: Store, wall: Callable[[], float], *, owner: str = "") -> None:
        self.store, self.wall = store, wall
        self.static: Mapping[str, KeyringEntry] = {}
        self.objects = Mirror(store, "Credential")
        self.synced = self.objects.synced
        self._stored: dict[str, KeyringEntry] = {}
        self._owner = KeyringEntry(OWNER, _digest(owner.encode())) if owner else None

    async def follow(self) -> None:
        """Keep up with the Credential objects, for ever: a revocation counts as soon as its event is here."""
        async for event in self.objects.changes():
            self._stored.pop(event.object.metadata.name, None)
            if isinstance(event.object, Credential) and event.type != "DELETED":
                self.take(event.object)

    def take(self, obj: Credential) -> None:
        """A Credential as it is stored; whoever has just written one need not wait for its event."""
        try:
            self._stored[obj.metadata.name] = entry(obj.metadata.name, obj.spec)
        except ValueError as e:  # written past the API
            log.error("credential.refused", credential=obj.metadata.name, error=str(e))

    def recognise(self, token: bytes) -> Ticket | None:
        front, _, secret = token.rpartition(b".")
        name = front[len(PREFIX) :].decode("latin-1") if front.startswith(b"j10ce.") else ""
        if self._entry(name) and (caller := self._caller(name, digest := _digest(secret))):
            return Ticket(caller, name, digest)
        digest = _digest(token)
        if self._owner and self._owner.accepts(digest, self.wall()):
            return Ticket(OWNER, "", digest)
        return None

    def holds(self, ticket: Ticket) -> bool:
        """Whether a ticket would be given again: neither revoked, nor changed, nor expired meanwhile."""
        if not ticket.digest:
            return self.wall() < ticket.expires
        if not ticket.name:
            return self._owner is not None and hmac.compare_digest(self._owner.digest, ticket.digest)
        return self._caller(ticket.name, ticket.digest) == ticket.caller

    def speakers(self, node: str) -> list[str]:
        """The names of credentials that are live and speak for a node."""
        every = {**self._stored, **self.static}
        return [name for name, e in every.items() if e.caller.node == node and self.wall() < e.expires]

    def is_static(self, name: str) -> bool:
        return name in self.static

    def _entry(self, name: str) -> KeyringEntry | None:
        return self.static.get(name) or self._stored.get(name)

    def _caller(self, name: str, digest: bytes) -> Caller | None:
        entry = self._entry(name)
        return entry.caller if entry is not None and entry.accepts(digest, self.wall()) else None


def entry(name: str, spec: CredentialSpec) -> KeyringEntry:
    """Raises ValueError for a hash that is none, and for a name of another kind of caller."""
    caller = caller_of(name, Role(spec.role), spec.node)
    if caller is None:
        raise ValueError(f"{name} is no name for role {spec.role}")
    used_up = spec.uses is not UNSET and spec.uses <= 0
    return KeyringEntry(
        caller,
        bytes.fromhex(spec.hash.removeprefix("sha256:")),
        0.0 if used_up else _moment(spec.expires, math.inf),
        bytes.fromhex(spec.former_hash.removeprefix("sha256:")),
        _moment(spec.former_expires, 0.0),
    )


def _moment(at: datetime | UnsetType, never: float) -> float:
    return never if at is UNSET else at.timestamp()


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
