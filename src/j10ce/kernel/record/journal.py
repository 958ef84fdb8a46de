"""The journal: what every setting held before us, and what we made of it. `revert` replays it backwards.

Settings die with the kernel, so the file lies under /run and is never synced: it survives the process, not the boot.
One line per entry, each with its checksum. A torn last line is what a killed process leaves behind and is dropped;
any other damage raises Corrupt, with a copy kept and nothing written to the machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

import msgspec

from j10ce.errors import Corrupt, Denied
from j10ce.kernel.record.entry import (
    CONTROLLERS,
    FORMAT,
    Did,
    Enabled,
    Entry,
    Forgot,
    Header,
    Joined,
    Made,
    Original,
    Wrote,
    from_line,
    from_spelled,
    to_line,
    wrote,
)
from j10ce.model.knob import KNOBS, Deed, Setting, TargetId, Value, group
from j10ce.model.workload import Handle

_COMPACT_ABOVE: Final = 1 << 20  # and always twice what is live: each line then pays for its own rewriting, at any size
_MOST_DEEDS: Final = 1024  # that are remembered; a node does a few in a minute
_OURS: Final = 2  # the value under way and the one before it


class Journal:
    """Append-only; rewritten at the start and when it has grown. Used from the kernel thread alone."""

    def __init__(self, path: Path, boot: str) -> None:
        """Empty, in memory; `open` gives one that continues the file."""
        self._path = path
        self._header = Header(FORMAT, boot)
        self._fd = -1
        self._size = 0
        self._compact_above = _COMPACT_ABOVE
        self.originals: dict[Setting, Original] = {}
        self._by_target: dict[TargetId, dict[Setting, None]] = {}  # the settings that have an original
        self._spelled: dict[Setting, Value] = {}
        self._values: Mapping[Setting, Value] | None = None  # a copy that callers may keep
        self._targets: Mapping[TargetId, Handle] | None = None
        self.owners: dict[Setting, str] = {}
        self._ours: dict[Setting, tuple[Value, ...]] = {}
        self.made: dict[TargetId, Made] = {}
        self.enabled: dict[TargetId, Enabled] = {}
        self.did: dict[tuple[Deed, TargetId], Did] = {}  # the last of each, oldest first

    @classmethod
    def open(cls, path: Path, boot: str, *, salvage: bool = False) -> Journal:
        """Continue a journal of this boot; one of another boot is void, since its settings died with the kernel.

        Raises Corrupt unless `salvage`, which keeps every line that is whole.
        """
        journal = cls(path, boot)
        entries = [from_line(line) for line in _whole_lines(path)] if path.exists() else []
        if path.exists() and _damaged(entries):
            journal._keep_copy(raising=not salvage)
        if any(isinstance(e, Header) and e.boot == boot for e in entries):
            for entry in entries:
                journal._take(entry)
        try:
            journal._rewrite()
        except OSError as e:
            raise Denied(f"cannot write the journal {path}: {e.strerror}; without it nothing may be changed") from e
        return journal

    def ours(self, setting: Setting) -> tuple[Value, ...]:
        """The values that we, not someone else, may have left there."""
        return self._ours.get(setting, ())

    def original(self, setting: Setting) -> Value | None:
        entry = self.originals.get(setting)
        return None if entry is None else from_spelled(entry.value)

    def values(self) -> Mapping[Setting, Value]:
        """Every original as a value; asked for on each tick, so it is kept."""
        if self._values is None:
            self._values = dict(self._spelled)
        return self._values

    def changed(self, target: TargetId) -> Set[Setting]:
        """The settings of a target that are ours to give back."""
        return self._by_target.get(target, {}).keys()

    def targets(self) -> Mapping[TargetId, Handle]:
        """Everything that we made or changed, and where it is."""
        if self._targets is None:
            made = {target: m.at for target, m in self.made.items()}
            self._targets = {t: self.originals[next(iter(s))].at for t, s in self._by_target.items()} | made
        return self._targets

    def rename(self, target: TargetId, to: TargetId | None = None) -> set[TargetId]:
        """What stands under a name is `to` from here on; without it the group at its path: another bears the name.

        The old name goes last: a kill in between leaves both, and what was there before us is known by one of them.
        """
        known = (entries.get(target) for entries in (self.made, self.enabled))
        moved: list[Entry] = [msgspec.structs.replace(e, target=to or group(e.at.path)) for e in known if e]
        for setting in self.changed(target):
            old = self.originals[setting]
            controller = KNOBS[setting.knob].controller if setting.knob in KNOBS else "cpu"
            path = old.at.path_of(controller)
            now = setting._replace(target=to or group(path))
            moved.append(msgspec.structs.replace(old, target=now.target))
            moved += (wrote(now, value, self.owners[setting]) for value in self.ours(setting))
        self.note(*moved, Forgot(target))
        return {entry.target for entry in moved}

    def places(self) -> Iterator[tuple[TargetId, Handle]]:
        """Where everything is that we made or wrote to."""
        for made in self.made.values():
            yield made.target, made.at
        for original in self.originals.values():
            yield original.target, original.at

    def add(self, *entries: Entry) -> None:
        """Write before the machine is changed. Raises OSError when the file cannot take it; then nothing is added."""
        self._append(b"".join(map(to_line, entries)))
        for entry in entries:
            self._take(entry)
        if self._size > self._compact_above:
            self._compact()

    def note(self, *entries: Entry) -> None:
        """Like `add`, for what only spares work after a restart: a full disk is no obstacle."""
        try:
            self.add(*entries)
        except OSError:
            for entry in entries:
                self._take(entry)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, entry: Header | Entry | None) -> None:
        match entry:
            case Original():
                self._values = self._targets = None
                self.originals.pop(entry.setting, None)  # a fresh one counts as the latest
                self.originals[entry.setting] = entry
                self._spelled[entry.setting] = from_spelled(entry.value)
                self._by_target.setdefault(entry.target, {})[entry.setting] = None
                self._ours.pop(entry.setting, None)
            case Wrote():
                value = from_spelled(entry.value)
                before = tuple(v for v in self.ours(entry.setting) if v != value)
                self._ours[entry.setting] = (*before, value)[-_OURS:]
                self.owners[entry.setting] = entry.owner
            case Made():
                self._targets = None
                self.made[entry.target] = entry
            case Enabled():
                known = self.enabled.get(entry.target)
                added = sorted({*entry.controllers, *(known.controllers if known else ())})
                self.enabled[entry.target] = Enabled(entry.target, entry.at, entry.identity, added)
            case Forgot():
                self._forget(entry)
            case Did():
                self._remember(entry)
            case Joined() | Header() | None:
                pass

    def _remember(self, deed: Did) -> None:
        self.did.pop((deed.deed, deed.target), None)
        self.did[deed.deed, deed.target] = deed
        while len(self.did) > _MOST_DEEDS:
            self.did.pop(next(iter(self.did)))

    def _forget(self, entry: Forgot) -> None:
        if entry.knob in ("", CONTROLLERS):
            self.enabled.pop(entry.target, None)
        self._values = self._targets = None
        known = self._by_target.get(entry.target, {})
        for setting in [Setting(entry.target, entry.knob, entry.instance)] if entry.knob else list(known):
            known.pop(setting, None)
            for held in (self.originals, self._spelled, self.owners, self._ours):
                held.pop(setting, None)
        if not known:
            self._by_target.pop(entry.target, None)
        if not entry.knob:
            self.made.pop(entry.target, None)

    def _live(self) -> Iterator[Entry]:
        yield from self.made.values()
        yield from self.enabled.values()
        yield from self.did.values()
        for setting, original in self.originals.items():
            yield original
            for value in self.ours(setting):
                yield wrote(setting, value, self.owners[setting])

    def _append(self, data: bytes) -> None:
        try:
            _write_all(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self._size)  # half a line in the middle would be corruption
            raise
        self._size += len(data)

    def _compact(self) -> None:
        try:
            self._rewrite()
        except OSError:  # no room for a second file: the long one still serves, try again when it has doubled
            self._compact_above *= 2

    def _rewrite(self) -> None:
        """Into a file beside it, then swapped: whoever is killed here leaves a whole journal."""
        data = b"".join(map(to_line, (self._header, *self._live())))
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.unlink(missing_ok=True)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _write_all(fd, data)
            os.replace(beside, self._path)
        except OSError:
            os.close(fd)
            beside.unlink(missing_ok=True)
            raise
        self.close()
        self._fd, self._size = fd, len(data)
        self._compact_above = max(_COMPACT_ABOVE, 2 * self._size)

    def _keep_copy(self, *, raising: bool) -> None:
        copy = _free_name(self._path)
        shutil.copy2(self._path, copy)
        if raising:
            raise Corrupt(f"the journal {self._path} is damaged; nothing was changed, a copy is kept as {copy}")


def _whole_lines(path: Path) -> list[bytes]:
    """Every line that its newline ends: what follows the last one was torn off by a kill."""
    return path.read_bytes().split(b"\n")[:-1]


def _damaged(entries: Sequence[Header | Entry | None]) -> bool:
    head = entries[0] if entries else None
    return not isinstance(head, Header) or head.format != FORMAT or any(e is None for e in entries)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]  # a full disk takes a part first and raises on the rest


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{n}") for n in range(1, 1000))
    return next(name for name in names if not name.exists())
