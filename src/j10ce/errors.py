"""Every error a caller may want to tell apart.

QosError
├── Invalid          input that cannot be accepted; carries all findings
│   └── Malformed    text that is no JSON at all
├── Unsupported      this machine lacks a feature; says what it needs
├── Denied           a rule of the system or of its owner forbids it
├── Busy             someone else owns what was asked for
├── Unreachable      the agent or the control plane does not answer
├── Corrupt          a file of ours cannot be trusted; a copy was kept
└── StoreError
    ├── NotFound
    ├── Conflict     a stale or duplicate write
    │   ├── AlreadyExists  a create met an object of its name
    │   └── FieldConflict  an apply would change what others own; carries owners and fields
    ├── Compacted    the watch asked for changes that are no longer kept
    ├── Closed       the store was closed by its owner
    ├── Unavailable  the store does not answer; nothing was changed
    │   └── Later    a peer is there and asks to be left alone for a while; Unreachable, too
    └── Unsure       the store did not answer a write in time: it may or may not have happened
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

MOST_SHOWN: Final = 200  # characters of a value: enough to recognise it
MOST_FINDINGS: Final = 50


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """As much of a text as an answer or a log repeats."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def shown(value: object) -> str:
    """A value as an answer or a log repeats it."""
    if isinstance(value, str):
        return repr(value) if len(value) <= MOST_SHOWN else f"{value[:MOST_SHOWN]!r}… ({len(value)} characters)"
    return cut(repr(value))


class Finding(NamedTuple):
    """One thing wrong with an input: where, which value, and what would be right."""

    path: str
    value: object
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        value = "" if self.value is None else f" = {shown(self.value)}"
        return f"{cut(self.path) or '(root)'}{value}: {self.advice}"

    @property
    def advice(self) -> str:
        hint = f"; {cut(self.hint, 500)}" if self.hint else ""
        return f"{cut(self.problem)}{hint}"


class QosError(Exception):
    """Base of all errors raised on purpose."""


class Invalid(QosError):
    def __init__(self, findings: Sequence[Finding], what: str = "input") -> None:
        self.findings = tuple(findings[:MOST_FINDINGS])
        self.what = what
        self.more = len(findings) - len(self.findings)
        rest = (f"and {self.more} more",) if self.more else ()
        super().__init__(f"invalid {cut(what)}: " + "; ".join((*map(str, self.findings), *rest)))


class Malformed(Invalid):
    """Not even text of the right format, so nothing more can be said about it."""


class Unsupported(QosError):
    def __init__(self, feature: str, *, needs: str) -> None:
        self.feature = feature
        self.needs = needs
        super().__init__(f"{feature} is not available here; it needs {needs}")


class Denied(QosError):
    """Refused with a reason; nothing was changed."""


class Busy(QosError):
    """Another owner holds it."""


class Unreachable(QosError):
    """No answer from the agent or the control plane."""


class Corrupt(QosError):
    """A file of ours is damaged; the message names the copy that was kept."""


class StoreError(QosError):
    """Base of the store's errors."""


class NotFound(StoreError):
    """No such object."""


class Conflict(StoreError):
    """The object moved on, or exists already."""


class AlreadyExists(Conflict):
    """A create met an object of its name."""


class FieldConflict(Conflict):
    """`owners`: (manager, field) of what an apply would take from someone else; `more` is how many are left out."""

    def __init__(self, owners: Sequence[tuple[str, str]]) -> None:
        self.owners = tuple((cut(manager), cut(field)) for manager, field in owners[:MOST_FINDINGS])
        self.more = len(owners) - len(self.owners)
        noun = "conflict" if len(owners) == 1 else "conflicts"
        rest = (f"and {self.more} more",) if self.more else ()
        conflicts = "; ".join((*(f'conflict with "{manager}": {field}' for manager, field in self.owners), *rest))
        super().__init__(f"Apply failed with {len(owners)} {noun}: {conflicts}")


class Compacted(StoreError):
    """The requested revision is older than the kept history: list again."""


class Closed(StoreError):
    """The store was closed by its owner; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("the store is closed")


class Unavailable(StoreError):
    """The store does not answer. Nothing was changed."""


class NotServed(Unavailable):
    """The API server has no such kind. Nothing was changed."""


class Later(Unavailable, Unreachable):
    """The peer is there and asks to be left alone for `after_s` seconds. Nothing was changed."""

    def __init__(self, message: str, after_s: float) -> None:
        self.after_s = after_s
        super().__init__(message)


class Unsure(StoreError):
    """The store did not answer a write in time, and could not be asked: it may have happened, or happen yet."""
