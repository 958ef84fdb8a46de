"""A systemd in memory: units with properties, and the cgroup files that follow from them, in a directory.

systemd = FakeSystemd(tmp_path)
units = Units(systemd, str(systemd.run))
systemd.add("system.slice/db.service")       # a unit that was there before us
systemd.reload()                             # what `systemctl daemon-reload` does to files written behind its back
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from j10ce.host.mounts import Hierarchies, Mount
from j10ce.kernel.systemd.dbus import MANAGER, MANAGER_PATH, CallFailed, Typed
from j10ce.kernel.systemd.units import UNSET, object_path

CONTROLLERS = frozenset({"cpu", "cpuset", "io", "memory", "pids"})
FRESH: dict[str, Any] = {
    "CPUWeight": UNSET,
    "CPUQuotaPerSecUSec": UNSET,
    "CPUQuotaPeriodUSec": UNSET,
    "AllowedCPUs": b"",
    "MemoryMin": 0,
    "MemoryLow": 0,
    "MemoryHigh": UNSET,
    "MemoryMax": UNSET,
    "IOAccounting": False,
    "IOWeight": UNSET,
}
UNTOUCHED = {"cpu.max.burst": "0", "memory.current": "0", "cgroup.procs": "", "cgroup.events": "populated 0\nfrozen 0"}
OF_DISKS = {"io.max": "", "io.stat": ""}  # which systemd leaves alone
DROP_INS = {"CPUQuotaPerSecUSec": "CPUQuota"}


class FakeSystemd:
    """A Bus. `calls` tells every call; `refuse` makes systemd say no to a property."""

    def __init__(self, folder: Path, version: str = "252.39-1", control_group: str = "") -> None:
        self.root = folder / "cgroup"
        self.run = folder / "run"
        self.version = version
        self.control_group = control_group
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.refuse: set[str] = set()
        self.units: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, str] = {}  # of the units that are active
        self.transient: set[str] = set()
        (self.root / control_group).mkdir(parents=True)
        (self.root / control_group / "cgroup.controllers").write_text(" ".join(sorted(CONTROLLERS)))

    @property
    def hierarchies(self) -> Hierarchies:
        mount = Mount(str(self.root), 2, CONTROLLERS)
        return Hierarchies(dict.fromkeys(CONTROLLERS, mount), mount)

    def add(self, path: str, **properties: Any) -> None:
        """A unit that someone else started."""
        unit = path.rpartition("/")[2]
        self.units[unit] = FRESH | properties
        self._realise(unit, path)

    def end(self, unit: str) -> None:
        """Its processes are gone, or someone stopped it; a transient unit leaves nothing behind."""
        shutil.rmtree(self.root / self.paths.pop(unit))
        if unit in self.transient:
            del self.units[unit]

    def reload(self) -> None:
        """Every managed file is written again as systemd knows it."""
        for unit in self.paths:
            self._write_files(unit)

    def call(
        self, member: str, signature: str = "", *body: Any, path: str = MANAGER_PATH, interface: str = MANAGER
    ) -> Any:
        self.calls.append((member, body))
        match member, body:
            case "Get", (_, name):
                return self._get(name, path)
            case "SetUnitProperties", (unit, True, rows):
                return self._set(unit, rows)
            case "AttachProcessesToUnit", (unit, _, pids):
                self._known(unit)
                return self._populate(unit, pids)
            case "Reload", ():
                return self.reload()
            case "Ping", ():
                return None
            case _:
                raise CallFailed("UnknownMethod", member)

    def run_job(self, unit: str, member: str, signature: str, *body: Any) -> None:
        self.calls.append((member, body))
        if member == "StopUnit":
            self._known(unit)
            return self.end(unit)
        if unit in self.paths:
            raise CallFailed("UnitExists", f"Unit {unit} was already loaded or has a fragment file.")
        given = {name: typed.value for name, typed in body[2]}
        self._check(given)
        parent = given.get("Slice") or f"{unit.removesuffix('.slice').rpartition('-')[0]}.slice"
        above = self.paths.get(parent, self.control_group)
        self.units[unit] = FRESH | {name: v for name, v in given.items() if name in FRESH}
        self.transient.add(unit)
        self._realise(unit, f"{above}/{unit}".lstrip("/"))
        return self._populate(unit, given.get("PIDs", []))

    def close(self) -> None:
        self.calls.append(("close", ()))

    def _get(self, name: str, path: str) -> Any:
        if path == MANAGER_PATH:
            return {"Version": self.version, "ControlGroup": self.control_group and f"/{self.control_group}"}[name]
        unit = next((u for u in self.units if object_path(u) == path), "")
        if name == "ControlGroup":
            return f"/{self.paths[unit]}" if unit in self.paths else ""
        return self._known(unit)[name]

    def _set(self, unit: str, rows: list[tuple[str, Typed]]) -> None:
        held = self._known(unit)
        self._check(dict(rows))
        for name, typed in rows:
            held[name] = typed.value
            folder = self.run / ("transient" if unit in self.transient else "system.control") / f"{unit}.d"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"50-{DROP_INS.get(name, name)}.conf").write_text(f"{name}={typed.value}")
        if unit in self.paths:
            self._write_files(unit)

    def _check(self, given: dict[str, Any]) -> None:
        if bad := self.refuse & given.keys():
            raise CallFailed("InvalidArgs", f"{min(bad)} is out of range")

    def _known(self, unit: str) -> dict[str, Any]:
        if unit not in self.units:
            raise CallFailed("NoSuchUnit", f"Unit {unit} not found.")
        return self.units[unit]

    def _realise(self, unit: str, path: str) -> None:
        (self.root / path).mkdir(parents=True)
        self.paths[unit] = path
        for name, text in UNTOUCHED.items():
            (self.root / path / name).write_text(text)
        self._write_files(unit)

    def _write_files(self, unit: str) -> None:
        held, weight = self.units[unit], self.units[unit]["CPUWeight"]
        bits = int.from_bytes(held["AllowedCPUs"], "little")
        texts = {
            "cpu.weight": "100" if weight == UNSET else str(weight),
            "cpu.idle": str(int(weight == 0)),
            "cpu.max": _quota(held["CPUQuotaPerSecUSec"], held["CPUQuotaPeriodUSec"]),
            "cpuset.cpus": ",".join(str(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1),
            "memory.oom.group": "0",
            "cgroup.freeze": "0",
            **{f"memory.{k}": _bytes(held[f"Memory{k.capitalize()}"]) for k in ("min", "low", "high", "max")},
        }
        for name, text in texts.items():
            (self.root / self.paths[unit] / name).write_text(text)
        self._write_disks(self.root / self.paths[unit], held)

    def _write_disks(self, folder: Path, held: dict[str, Any]) -> None:
        """Files of the io controller are there while it is asked for."""
        if not held["IOAccounting"] and held["IOWeight"] == UNSET:
            for name in (*OF_DISKS, "io.weight"):
                if (folder / name).exists():
                    (folder / name).unlink()
            return
        for name, text in OF_DISKS.items():
            if not (folder / name).exists():
                (folder / name).write_text(text)
        (folder / "io.weight").write_text(f"default {100 if held['IOWeight'] == UNSET else held['IOWeight']}\n")

    def _populate(self, unit: str, pids: list[int]) -> None:
        folder = self.root / self.paths[unit]
        (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
        (folder / "cgroup.events").write_text(f"populated {int(bool(pids))}\nfrozen 0")


def _quota(per_second: int, period: int) -> str:
    """In the unit's own period, or one so long that a quota is a millisecond at least."""
    period = 100_000 if period == UNSET else period
    if per_second == UNSET:
        return f"max {period}"
    period = max(period, 1000 * 1_000_000 // per_second)
    return f"{max(1000, per_second * period // 1_000_000)} {period}"


def _bytes(n: int) -> str:
    return "max" if n == UNSET else str(n // 4096 * 4096)
