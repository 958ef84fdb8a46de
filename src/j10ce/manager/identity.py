"""Who asks, and what for: the words that every front end, the rights and the audit log share."""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from typing import Final, Literal, NamedTuple

from j10ce.model.kinds import Object

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
READS: Final[tuple[Verb, ...]] = ("get", "list", "watch")
WRITES: Final[tuple[Verb, ...]] = ("create", "update", "patch", "delete")


class Role(Enum):
    VIEWER = "viewer"
    EDITOR = "editor"
    NODE = "node"
    ADMIN = "admin"
    BOOTSTRAP = "bootstrap"  # enrols nodes, and nothing else


class Caller(NamedTuple):
    name: str
    role: Role
    node: str = ""  # role node: the one it speaks for

    def __str__(self) -> str:
        return f"{self.name} ({self.role.value}{f' {self.node}' if self.node else ''})"


NOBODY: Final = Caller("", Role.VIEWER)  # before it is known who asks; has no rights, whatever its role says
SYSTEM: Final = Caller("system", Role.ADMIN)  # the manager's own deeds


class Act:
    """One request as it goes: who asks, from where, for what, and what it changes. The audit log tells it."""

    __slots__ = ("after", "before", "caller", "dry", "kind", "name", "namespace", "part", "proof", "source", "verb")

    def __init__(self, caller: Caller = NOBODY, source: str = "", proof: bytes = b"") -> None:
        self.caller, self.source = caller, source
        self.proof = proof  # digest of the secret that the caller was recognised by
        self.verb: Verb | Literal[""] = ""  # empty until `roles.enter` has allowed or refused it
        self.kind = self.namespace = self.name = ""
        self.part = "spec"
        self.dry = False
        self.before: Object | None = None
        self.after: Object | None = None


_ACT: Final[ContextVar[Act]] = ContextVar("act")


class acting:  # noqa: N801  used as a statement: `with acting(act):`
    """Everything below, in this task and those it starts, happens for this request."""

    __slots__ = ("_act", "_token")

    def __init__(self, act: Act) -> None:
        self._act = act

    def __enter__(self) -> Act:
        self._token = _ACT.set(self._act)
        return self._act

    def __exit__(self, *_: object) -> None:
        _ACT.reset(self._token)


def current() -> Act:
    """The request being served; a LookupError outside of one, so that nothing is done in nobody's name."""
    return _ACT.get()
