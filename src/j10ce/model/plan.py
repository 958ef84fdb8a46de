"""Wishes, decisions and writes: from Proposal through Verdict and Change to Plan and Outcome."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from j10ce.model.knob import Deed, Setting, TargetId, Value


class Bound(Enum):
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    WANT = "want"


class Rank(IntEnum):
    ADVICE = 1
    POLICY = 2
    SAFETY = 3
    HOLD = 4


class Proposal(NamedTuple):
    """A wish with its reason: one short sentence with numbers."""

    setting: Setting
    bound: Bound
    value: Value
    owner: str
    rank: Rank
    reason: str


class Verdict(NamedTuple):
    """How one setting was decided. `clamps` tells, in order, what moved the winner's value."""

    setting: Setting
    value: Value
    winner: Proposal | None  # None: the value follows from children or bounds alone
    others: tuple[Proposal, ...] = ()
    clamps: tuple[str, ...] = ()
    held: str = ""  # the hold that froze it, if one did
    by: Proposal | None = None  # whose want or bound set the value; None: children, floors or the kernel's rules did
    moved_by: tuple[Proposal, ...] = ()  # of the others, whose bounds are among the clamps


class ValueChange(NamedTuple):
    setting: Setting
    old: Value | None  # None: unknown, never read
    new: Value
    owner: str
    why: str
    ends: bool = False  # the original, to the letter: the setting is not ours any more afterwards


class Make(NamedTuple):
    """Create the target's cgroup (and, where systemd owns the tree, its unit)."""

    target: TargetId
    path: str
    why: str


class Enable(NamedTuple):
    """Make controllers available to the children of a target."""

    target: TargetId
    controllers: frozenset[str]
    why: str


class Join(NamedTuple):
    target: TargetId
    pid: int
    why: str
    proof: str = ""  # of which process the number was; empty: of whichever has it


class Remove(NamedTuple):
    """Remove an empty cgroup of ours; a populated one is left and reported."""

    target: TargetId
    why: str


Structural: TypeAlias = Make | Enable | Join | Remove
Change: TypeAlias = ValueChange | Make | Enable | Join | Remove


class Action(NamedTuple):
    """A deed that leaves no value behind. It is recorded before it is done, and never repeated after a restart."""

    deed: Deed
    target: TargetId
    owner: str
    reason: str  # one short sentence with numbers
    amount: float = 0.0  # bytes to reclaim, or that the end of the workload sets free
    stage: str = ""  # of the ladder that led here
    enforced: bool = True  # False: shown, and not done
    only: str = ""  # of a reclaim: `file` is page cache alone; empty: whatever the kernel chooses
    trigger: str = ""  # what called for it: memory, cpu, …

    @property
    def what(self) -> tuple[Deed, TargetId]:
        return self.deed, self.target


class LadderView(NamedTuple):
    """How far a controller has gone in stages, for people to read: what about, how far, and who is next."""

    about: str  # memory, cpu, satisfaction, lent-cpu, lent-memory
    stage: str
    text: str  # with numbers
    targets: tuple[TargetId, ...] = ()  # whom it concerns, the first to go first


class Plan(Struct, frozen=True):
    """The ordered set of writes, then the deeds; the tree is valid after every prefix of it."""

    changes: tuple[Change, ...] = ()
    verdicts: Mapping[Setting, Verdict] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what concerns no single setting: floors cut, placements refused
    actions: tuple[Action, ...] = ()
    pending: tuple[Action, ...] = ()  # evictions that were asked for before, and are still wished for

    @property
    def empty(self) -> bool:
        return not self.changes and not self.actions


class Applied(NamedTuple):
    """Written and read back. `value` is what the kernel holds now."""

    value: Value


class Unchanged(NamedTuple):
    value: Value


class Pending(NamedTuple):
    """A slow knob: handed to its thread, not read back yet."""


class Refused(NamedTuple):
    reason: str


class Gone(NamedTuple):
    """The target vanished; that is normal."""


Result: TypeAlias = Applied | Unchanged | Pending | Refused | Gone


class Outcome(Struct, frozen=True):
    """What became of each change and each deed of a plan, in its order. Dry: nothing was tried."""

    results: tuple[tuple[Change, Result], ...] = ()
    dry: bool = False
    deeds: tuple[tuple[Action, Result], ...] = ()

    @classmethod
    def planned(cls, plan: Plan) -> Outcome:
        """The outcome of an unarmed agent: every change is named, none was made."""
        no = Refused("not armed")
        return cls(tuple((c, no) for c in plan.changes), dry=True, deeds=tuple((a, no) for a in plan.actions))

    def refused(self) -> list[tuple[Change, Refused]]:
        return [(c, r) for c, r in self.results if isinstance(r, Refused)]


class HeldSetting(NamedTuple):
    """An operator's freeze, as the arbiter sees it. `value` None: leave whatever is there."""

    setting: Setting
    value: Value | None
    expires: float  # wall clock
    who: str
    why: str
    breaks_reservation: bool = False
