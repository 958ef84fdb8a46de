"""The resctrl file system in memory, with the rules by which the kernel takes or refuses what is written there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from j10ce.host.resctrl import AMD_MOST, BANDWIDTH, SCHEMATA, examine
from j10ce.kernel.resctrl.files import NOT_GROUPS, TASKS, VIA, ResctrlFiles
from j10ce.model.knob import Support
from j10ce.model.machine.cache import CacheControl
from j10ce.model.plan import Gone, Refused
from j10ce.testing.beside.fake_tasks import FakeTasks

MODE: Final = "mode"


@dataclass
class CacheGroup:
    """A folder: what each resource holds by cache."""

    identity: int
    held: dict[str, dict[str, int]]
    exclusive: bool = False


class FakeResctrl(ResctrlFiles):
    """`lines`: the resources of the CPU, such as L3 and MB, or L3CODE and L3DATA. The root's own group has no name."""

    def __init__(
        self,
        tasks: FakeTasks | None = None,
        *,
        lines: Collection[str] = ("L3", BANDWIDTH),
        caches: Collection[str] = ("0", "1"),
        ways: int = 20,
        least: int = 1,
        closids: int = 16,
        sparse: bool = False,
        amd: bool = False,
    ) -> None:
        super().__init__()
        self.tasks = tasks
        self.mounted = True
        self.amd = amd
        self._ways, self._least, self._closids, self._sparse = ways, least, closids, sparse
        self._step, self._lowest, self._most = (1, 1, AMD_MOST) if amd else (10, 10, 100)
        self._next = count(1)
        self._status = "ok"
        whole = {name: self._most if name == BANDWIDTH else (1 << ways) - 1 for name in lines}
        self.by_name = {"": CacheGroup(0, {name: dict.fromkeys(caches, v) for name, v in whole.items()})}

    def control(self) -> CacheControl:
        return examine(self.read, amd=self.amd)

    def vanish(self, group: str) -> None:
        """Someone else removes it."""
        self.remove(group)

    def support(self) -> Support:
        return Support(True, VIA) if self.mounted else Support(False, VIA, needs="mount -t resctrl")

    def groups(self) -> Collection[str]:
        return [name for name in self.by_name if name] if self.mounted else []

    def identity(self, group: str) -> int | None:
        return self.by_name[group].identity if self.mounted and group in self.by_name else None

    def read(self, path: str) -> str | None:
        if not self.mounted:
            return None
        if path.startswith("info/"):
            return self._info(path.removeprefix("info/"))
        name, _, leaf = path.rpartition("/")
        group = self.by_name.get(name)
        if group is None or leaf not in (SCHEMATA, TASKS, MODE):
            return None
        if leaf == TASKS:
            return "".join(f"{task}\n" for task, home in self.homes(self._alive()).items() if home == name)
        if leaf == MODE:
            return "exclusive\n" if group.exclusive else "shareable\n"
        return "".join(f"{resource:>6}:{self._spelled(resource, held)}\n" for resource, held in group.held.items())

    def write(self, path: str, text: str) -> Refused | Gone | None:
        name, _, leaf = path.rpartition("/")
        if not self.mounted or name not in self.by_name:
            return Gone()
        if leaf != SCHEMATA:
            return Refused(f"cannot write {path}: kernel said EACCES")
        self._status = self._take(self.by_name[name], text.strip()) or "ok"
        return None if self._status == "ok" else Refused(f"cannot write {text!r}: kernel said EINVAL; {self._status}")

    def make(self, group: str) -> Refused | None:
        if not self.mounted or group in self.by_name or group in NOT_GROUPS:
            return Refused(f"someone else has made the group {group!r}")
        if len(self.by_name) >= self._closids:
            self._status = "Out of CLOSIDs"
            return Refused(f"no group {group!r}: kernel said ENOSPC; {self._status}")
        fresh = {r: self._fresh(r) for r in self.by_name[""].held}
        for resource, held in fresh.items():
            for cache in (c for c, bits in held.items() if resource != BANDWIDTH and bits.bit_count() < self._least):
                self._status = f"No space on {resource}:{cache}"
                return Refused(f"no group {group!r}: kernel said ENOSPC; {self._status}")
        self.by_name[group] = CacheGroup(next(self._next), fresh)
        return None

    def remove(self, group: str) -> Refused | Gone | None:
        if not self.mounted or not group or self.by_name.pop(group, None) is None:
            return Gone()
        for task in self.tasks.alive.values() if self.tasks else ():
            task.group = "" if task.group == group else task.group
        return None

    def homes(self, tasks: Collection[int]) -> Mapping[int, str]:
        alive = self.tasks.alive if self.tasks else {}
        return {task: alive[task].group for task in tasks if task in alive}

    def move(self, task: int, group: str) -> Refused | Gone | None:
        if not self.mounted or group not in self.by_name:
            return Refused(f"there is no group {group!r}")
        if self.tasks is None or task not in self.tasks.alive:
            self._status = f"No task {task}"
            return Gone()
        self.tasks.alive[task].group = group
        return None

    def _alive(self) -> Collection[int]:
        return self.tasks.alive if self.tasks else ()

    def _info(self, path: str) -> str | None:
        resource, _, leaf = path.partition("/")
        if path == "last_cmd_status":
            return f"{self._status}\n"
        if resource not in self.by_name[""].held:
            return None
        common = {"num_closids": str(self._closids)}
        cache = {"cbm_mask": f"{(1 << self._ways) - 1:x}", "min_cbm_bits": str(self._least), "shareable_bits": "0"}
        rate = {"min_bandwidth": str(self._lowest), "bandwidth_gran": str(self._step), "delay_linear": "1"}
        said = common | (rate if resource == BANDWIDTH else cache | {"sparse_masks": str(int(self._sparse))})
        return f"{said[leaf]}\n" if leaf in said else None

    def _fresh(self, resource: str) -> dict[str, int]:
        """A new group has the first ways side by side that no exclusive one has."""
        held = dict(self.by_name[""].held[resource])
        if resource == BANDWIDTH:
            return dict.fromkeys(held, self._most)
        taken = {c: self._taken(resource, c, None) for c in held}
        free = {c: ((1 << self._ways) - 1) & ~taken[c] for c in held}
        return {c: bits & ~(bits + (bits & -bits)) if bits else 0 for c, bits in free.items()}

    def _taken(self, resource: str, cache: str, but: CacheGroup | None) -> int:
        exclusive = (g.held[resource][cache] for g in self.by_name.values() if g.exclusive and g is not but)
        return sum(bits for bits in exclusive)

    def _take(self, group: CacheGroup, text: str) -> str:
        """What the kernel has against a line; empty: it holds from here on."""
        name, colon, values = text.partition(":")
        if not colon:
            return "Missing ':'"
        if name.strip() not in group.held:
            return f"Unknown or unsupported resource name '{name.strip()}'"
        resource, wanted = name.strip(), dict[str, int]()
        for item in filter(None, values.split(";")):
            cache, equals, value = (part.strip() for part in item.partition("="))
            if not equals or cache not in group.held[resource]:
                return f"Missing '=' or non-numeric domain: {item!r}" if not equals else f"Unknown domain {cache}"
            if cache in wanted:
                return f"Duplicate domain {cache}"
            number = self._number(resource, value)
            if isinstance(number, str):
                return number
            if resource != BANDWIDTH and (why := self._overlaps(resource, cache, number, group)):
                return why
            wanted[cache] = number
        group.held[resource] |= wanted
        return ""

    def _overlaps(self, resource: str, cache: str, bits: int, group: CacheGroup) -> str:
        if bits & self._taken(resource, cache, group):
            return "Overlaps with exclusive group"
        others = (g.held[resource][cache] for g in self.by_name.values() if g is not group)
        return "Overlaps with other group" if group.exclusive and any(bits & o for o in others) else ""

    def _number(self, resource: str, text: str) -> int | str:
        try:
            value = int(text, 10 if resource == BANDWIDTH else 16)
        except ValueError:
            return f"Non-numeric or invalid value {text!r}"
        if resource == BANDWIDTH:
            if not self._lowest <= value <= self._most:
                return f"MB value {value} out of range [{self._lowest},{self._most}]"
            return -(-value // self._step) * self._step
        return self._mask(value)

    def _mask(self, value: int) -> int | str:
        if not 0 < value < 1 << self._ways:
            return "Mask out of range"
        lowest = value & -value
        if not self._sparse and (value + lowest) & value:
            return f"The mask {value:x} has non-consecutive 1-bits"
        if value.bit_count() < self._least:
            return f"Need at least {self._least} bits in the mask"
        return value

    def _spelled(self, resource: str, held: Mapping[str, int]) -> str:
        digits = "" if resource == BANDWIDTH else "x"
        return ";".join(f"{cache}={value:{digits}}" for cache, value in held.items())
