"""Who asks, and what for: the words that every front end, the rights and the audit log share."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol

from j10ce.model.kinds import Object
from j10ce.policy.validation import credential
from j10ce.policy.validation.credential import BOOTSTRAP_PREFIX, NODE_PREFIX, RESERVED

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
    """`name` is who it is for limits, audit log and owners of fields: `caller_of` makes it unmistakable."""

    name: str
    role: Role
    node: str = ""  # role node: the one it speaks for

    def __str__(self) -> str:
        return f"{self.name} ({self.role.value}{f' {self.node}' if self.node else ''})"


def caller_of(name: str, role: Role, node: str = "") -> Caller | None:
    """Whom a credential or a certificate of that name means; None: a person by the name of another kind, or by ours."""
    if role is Role.NODE:
        return Caller(NODE_PREFIX + node, role, node) if node else None
    if role is Role.BOOTSTRAP:
        return Caller(BOOTSTRAP_PREFIX + name.removeprefix(BOOTSTRAP_PREFIX), role)
    taken = name in RESERVED or name.startswith((NODE_PREFIX, BOOTSTRAP_PREFIX))
    return None if taken else Caller(name, role)


NOBODY: Final = Caller("", Role.VIEWER)  # before it is known who asks; has no rights, whatever its role says
SYSTEM: Final = Caller(credential.SYSTEM, Role.ADMIN)  # the manager's own deeds


class Paying(Protocol):
    """Counts what a request takes of its caller's time."""

    def ask(self) -> None:
        """Raises Refusal 429 where none is left."""
        ...

    def pay_for_thread(self, seconds: float) -> None: ...


class Act:
    """One request as it goes: who asks, from where, for what, and what it changes. The audit log tells it."""

    __slots__ = (
        "_announce",
        "after",
        "announced",
        "before",
        "caller",
        "credential",
        "dry",
        "id",
        "kind",
        "meter",
        "name",
        "namespace",
        "part",
        "proof",
        "source",
        "verb",
    )

    def __init__(
        self, caller: Caller = NOBODY, source: str = "", announce: Callable[[Act], None] = lambda _: None
    ) -> None:
        self.caller, self.source = caller, source
        self.credential, self.proof = "", b""  # by whose name, and digest of whose secret, the caller was recognised
        self.verb: Verb | Literal[""] = ""  # empty until `roles.enter` has allowed or refused it
        self.kind = self.namespace = self.name = ""
        self.part = "spec"
        self.dry = False
        self.meter: Paying | None = None  # of its caller's time
        self.before: Object | None = None
        self.after: Object | None = None
        self.id = ""  # joins what the audit log says before the write and after it
        self.announced: tuple[str, ...] = ()
        self._announce = announce

    def recognised(self, caller: Caller, credential: str, proof: bytes) -> None:
        self.caller, self.credential, self.proof = caller, credential, proof

    def announce(self) -> None:
        """To be called right before each write: what cannot be announced is not done. Raises Refusal."""
        about = (self.verb, self.kind, self.namespace, self.name, self.part)
        if not self.dry and self.announced != about:
            self._announce(self)
            self.announced = about


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
