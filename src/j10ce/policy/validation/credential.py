"""What can be wrong with a Credential beyond its shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.kinds import CredentialSpec
from j10ce.policy.validation import syntax
from j10ce.policy.validation.sections import outside

HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
MOST_USES: Final = 1_000_000
# Nodes and bootstrap tokens have names of their own kind, so that no two callers of different kinds ever share one.
NODE_PREFIX: Final = "node."
BOOTSTRAP_PREFIX: Final = "bootstrap."
# Who the audit log calls so: the manager itself, and whoever shows the token of its token file.
SYSTEM, OWNER = "system", "owner"
RESERVED: Final = (SYSTEM, OWNER)


def credential(name: str, spec: CredentialSpec) -> Iterator[Finding]:
    """A hash is never shown in a finding: what stands in its place may be the secret itself."""
    yield from _name(name, spec)
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


def _name(name: str, spec: CredentialSpec) -> Iterator[Finding]:
    node = name.removeprefix(NODE_PREFIX) if name.startswith(NODE_PREFIX) else ""
    if node and (spec.role, spec.node) != ("node", node):
        hint = f"such names are those of nodes; give it role node and node {node}, or another name"
        yield Finding("metadata.name", name, f"not the name of a token of role {spec.role}", hint)
    if name in RESERVED and spec.role not in ("node", "bootstrap"):
        hint = f"{' and '.join(RESERVED)} are the manager's own names in the audit log; give it another"
        yield Finding("metadata.name", name, f"not the name of a token of role {spec.role}", hint)
    if name.startswith(BOOTSTRAP_PREFIX) and spec.role != "bootstrap":
        hint = "such names are those of bootstrap tokens; give it another"
        yield Finding("metadata.name", name, f"not the name of a token of role {spec.role}", hint)


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
    if moment is not UNSET:
        yield from syntax.moment(path, moment)
