"""The seams below the kernel facade: who spells values, and who owns the tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from j10ce.errors import QosError
from j10ce.model.knob import Deed, Setting, Support, TargetId, Value
from j10ce.model.plan import Action, Applied, Gone, Refused
from j10ce.model.workload import Handle

T = TypeVar("T")


class Backend(Protocol):
    """Spells values for one mechanism (cgroup v1, cgroup v2, systemd, …). All methods run on the kernel thread."""

    def knobs(self) -> Mapping[str, Support]:
        """What this machine offers, or why not. Probed once; never raises."""
        ...

    def quantise(self, s: Setting, v: Value, /) -> Value:
        """What the kernel will make of `v`: shares to weight and back, pages, milliseconds. Pure and idempotent."""
        ...

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        """The value now; None when the target is gone."""
        ...

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        """Make the kernel hold `v` and read it back.

        Idempotent. Gone: the target vanished. Refused: the kernel said no, and why (value included).
        May block while memory is reclaimed.
        """
        ...

    def save(self, s: Setting, at: Handle, /) -> str | None:
        """The present value exactly as the kernel or the unit spells it, for the journal; None when gone."""
        ...

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        """Put back what `save` returned, to the letter."""
        ...


class Estate(Protocol):
    """Who owns the structure of one kind of target beside cgroups, as a Tree does for these.

    The node; groups of resctrl; links and disks. All methods run on the kernel thread.
    """

    kind: str  # what targets of it begin with: `node`, `resctrl`

    def targets(self) -> Collection[TargetId]:
        """Those that are there now. Asked for on every tick."""
        ...

    def place(self, target: TargetId, /) -> Handle | None:
        """Where a target of this kind is or would be; None for one that cannot be."""
        ...

    def identity(self, at: Handle, /) -> int | None:
        """Never the same for two that stood at one place within a boot; None when nothing is there."""
        ...


@runtime_checkable
class Builds(Protocol):
    """An estate whose targets are made and removed by us, each on record before."""

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone: ...
    def remove(self, target: TargetId, /) -> Applied | Refused | Gone: ...


def attempt(what: Callable[[], T]) -> T | Refused:
    """A back end or a tree that cannot even try says no like one that tried."""
    try:
        return what()
    except QosError as e:
        return Refused(str(e))


@runtime_checkable
class Batched(Protocol):
    """A back end for which many writes to one target cost as much as one (systemd)."""

    def write_many(self, values: Sequence[tuple[Setting, Value]], at: Handle, /) -> list[Applied | Refused | Gone]: ...


@runtime_checkable
class Instanced(Protocol):
    """A back end some of whose knobs have several values per target, one per cache, disk or link."""

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        """Those that the knob has there; empty for a knob that has one value, and for a target that is gone."""
        ...


@runtime_checkable
class Acts(Protocol):
    """A back end that can do what leaves no value behind."""

    def deeds(self) -> Mapping[Deed, Support]:
        """What this machine can do, or why not. Probed once; never raises."""
        ...

    def act(self, action: Action, at: Handle, /) -> Applied | Refused | Gone:
        """Do it; Applied carries how much was done. May block while memory is reclaimed."""
        ...


@runtime_checkable
class Tends(Protocol):
    """A back end whose values are held by many, some of whom come later: newcomers are looked after, never drift."""

    def tend(self, s: Setting, v: Value, at: Handle, /) -> Refused | Gone | None:
        """`v` is ours there: give it to whoever came since. Cheap when nobody did; None: all have it."""
        ...

    def recall(self, s: Setting, v: Value, at: Handle, /) -> None:
        """An agent before this one wrote `v` there. Changes nothing on the machine."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A back end that knows what a target uses of the resource that a cap limits."""

    def usage(self, s: Setting, at: Handle, /) -> float | None:
        """In the unit of the knob; None when the target is gone or nothing is counted."""
        ...


@runtime_checkable
class Surveys(Protocol):
    """A back end that sees every group right below the root, whoever made it."""

    def beside(self, s: Setting, at: Handle, /) -> float:
        """The sum of a knob over all of them but the one at `at`."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A back end with something to finish once a revert is complete (systemd: to forget the drop-ins removed)."""

    def settle(self) -> None: ...


class Tree(Protocol):
    """Who owns the cgroup tree: plain directories, systemd, or a user's delegated subtree. See docs/adr."""

    name: str  # `plain`, `systemd`, `systemd-user`

    def place(self, target: TargetId, /) -> Handle | None:
        """Where a known target is; None for an unknown one."""
        ...

    def path_for(self, tier: str, namespace: str, name: str, /) -> Handle:
        """Where a local workload of that tier belongs; `name` empty: the tier itself; `tier` empty: our top group."""
        ...

    def know(self, target: TargetId, at: Handle, /) -> None:
        """Remember where a target is that was adopted, or made before a restart."""
        ...

    def owns(self, at: Handle, /) -> bool:
        """Whether the place is our top group or lies below it."""
        ...

    def identity(self, at: Handle, controller: str, /) -> int | None:
        """The cgroup's id, never reused within a boot; None when there is no such cgroup.

        systemd keeps values by the name of a unit, over restarts of it: there the name identifies, see docs/adr/0003.
        """
        ...

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone: ...
    def enable(self, target: TargetId, controllers: frozenset[str], /) -> Applied | Refused | Gone: ...
    def join(self, target: TargetId, pid: int, /) -> Applied | Refused | Gone: ...
    def remove(self, target: TargetId, /) -> Applied | Refused | Gone: ...


@runtime_checkable
class Disables(Protocol):
    """A tree whose `enable` can be taken back (plain directories; systemd does it by itself)."""

    def enabled(self, target: TargetId, /) -> frozenset[str] | None:
        """The controllers that the children of a target have; None when it is gone."""
        ...

    def disable(self, target: TargetId, controllers: frozenset[str], /) -> Applied | Refused | Gone: ...
