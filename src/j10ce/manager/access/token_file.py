"""The auth file: credentials that an administrator keeps beside the manager. It holds hashes, never tokens."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from j10ce.daemon.config_file import MOST_BYTES, plain_of
from j10ce.errors import Denied, Finding, Invalid
from j10ce.manager.access.tokens import Keyring, KeyringEntry, entry
from j10ce.model.kinds import CredentialSpec, Strict
from j10ce.model.schema import convert_ours
from j10ce.policy.validation import syntax
from j10ce.policy.validation.credential import credential

log = structlog.get_logger()


class KnownToken(CredentialSpec, frozen=True, kw_only=True):
    """One token that is known by its hash."""

    name: str


class AuthFile(Strict, frozen=True, kw_only=True):
    tokens: tuple[KnownToken, ...] = ()


def load(path: Path) -> AuthFile:
    """Raises Denied for a file that others may write or anyone may read, Invalid with every finding."""
    try:
        with path.open("rb") as file:
            facts, text = os.fstat(file.fileno()), file.read(MOST_BYTES + 1)
    except OSError as e:
        raise Denied(f"cannot read the auth file {path}: {e.strerror}") from None
    if facts.st_mode & 0o027:
        raise Denied(f"{path} may be written or read by others (mode {facts.st_mode & 0o777:04o}); chmod 600 it")
    if facts.st_uid not in (0, os.geteuid()):
        raise Denied(f"{path} belongs to uid {facts.st_uid}, who could give themselves any role; chown it")
    return parse(text)


def parse(text: bytes) -> AuthFile:
    """YAML or JSON; raises Invalid with every finding."""
    plain = plain_of(text, "auth file") or {}
    try:
        tokens_file = convert_ours(plain, AuthFile)
    except Invalid as e:
        # A value that does not belong may be a token that was pasted into the wrong place.
        raise Invalid([finding._replace(value=None) for finding in e.findings], "auth file") from None
    findings = [f for n, known in enumerate(tokens_file.tokens) for f in _check(f"tokens[{n}]", known)]
    names = [known.name for known in tokens_file.tokens]
    findings += [
        Finding(f"tokens[{n}].name", name, "stands here twice", "one token has one name")
        for n, name in enumerate(names)
        if name in names[:n]
    ]
    if findings:
        raise Invalid(findings, "auth file")
    return tokens_file


def entries(tokens_file: AuthFile) -> dict[str, KeyringEntry]:
    return {known.name: entry(known.name, known) for known in tokens_file.tokens}


def reload(keyring: Keyring, path: Path) -> None:
    """Take the file as it is; one with mistakes is logged, and what was in force stays in force."""
    try:
        keyring.static = entries(load(path))
    except (Denied, Invalid) as e:
        log.error("auth.refused", file=str(path), error=str(e))
    else:
        log.info("auth.load", file=str(path), tokens=len(keyring.static))


def _check(where: str, known: KnownToken) -> list[Finding]:
    findings = [*syntax.name("name", known.name), *credential(known.name, known)]
    if known.role == "bootstrap":
        # A file is not counted down; its bootstrap tokens end by their expiry alone.
        findings = [f for f in findings if f.path != "spec.uses"]
    return [f._replace(path=f"{where}.{f.path.removeprefix('spec.').removeprefix('metadata.')}") for f in findings]
