"""What can be wrong with a Credential beyond its shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.kinds import CredentialSpec
from j10ce.policy import syntax
from j10ce.policy.sections import outside

HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
MOST_USES: Final = 1_000_000


def credential(spec: CredentialSpec) -> Iterator[Finding]:
    """A hash is never shown in a finding: what stands in its place may be the secret itself."""
    yield from _hash("spec.hash", spec.hash)
    if spec.role == "node":
        yield from syntax.name("spec.node", spec.node)
    elif spec.node:
        yield Finding("spec.node", spec.node, f"role {spec.role} speaks for no node", "remove it, or use role node")
    yield from _moment("spec.expires", spec.expires)
    if spec.role == "bootstrap":
        yield from _bootstrap(spec)
    elif spec.uses is not UNSET:
        yield Finding("spec.uses", spec.uses, f"role {spec.role} is not used up", "remove it, or use role bootstrap")
    if spec.former_hash:
        yield from _hash("spec.formerHash", spec.former_hash)
        yield from _moment("spec.formerExpires", spec.former_expires)
    if bool(spec.former_hash) != (spec.former_expires is not UNSET):
        yield Finding("spec.formerHash", None, "formerHash and formerExpires go together", "give both or neither")


def _bootstrap(spec: CredentialSpec) -> Iterator[Finding]:
    if spec.expires is UNSET:
        yield Finding("spec.expires", None, "a bootstrap token ends", "write it as 2026-01-31T12:00:00Z")
    if spec.uses is UNSET:
        yield Finding("spec.uses", None, "a bootstrap token is used up", "say how many nodes it may enrol")
    else:
        yield from outside("spec.uses", spec.uses, 0, MOST_USES)


def _hash(path: str, text: str) -> Iterator[Finding]:
    if not HASH.fullmatch(text):
        hint = "`j10ce-qos token create` makes tokens and writes their hashes"
        yield Finding(path, None, "not sha256: and 64 hex digits", hint)


def _moment(path: str, moment: datetime | UnsetType) -> Iterator[Finding]:
    if moment is not UNSET and moment.tzinfo is None:
        yield Finding(path, moment.isoformat(), "no time zone", "write it as 2026-01-31T12:00:00Z")
