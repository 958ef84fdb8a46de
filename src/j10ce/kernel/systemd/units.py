"""systemd's units: how they are named, where their cgroups are, and the verbs of the manager that keeps them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from j10ce.errors import Denied, Finding, Invalid, NotFound
from j10ce.host.mounts import inside
from j10ce.kernel.systemd.dbus import MANAGER, PROPERTIES, Bus, CallFailed, Typed
from j10ce.model.plan import Gone, Refused
from j10ce.model.workload import Handle

UNSET: Final = (1 << 64) - 1  # how systemd spells "not set" and "no limit"
GONE: Final = frozenset({"NoSuchUnit", "NoSuchProcess", "UnitMasked"})

_UNSAFE: Final = re.compile(r"^\.|[^A-Za-z0-9:_.-]")
_UNIT: Final = re.compile(r"[^/]+\.(slice|scope|service|socket|mount|swap)")
_PODS: Final = re.compile(r"kubepods([.-]|$)")
_MAX_NAME: Final = 255
_RUN: Final = "/run/systemd"


class Units:
    """The verbs of one manager: the system's, or a user's own. Raises CallFailed with systemd's words."""

    def __init__(self, bus: Bus, run: str = _RUN, *, user: bool = False) -> None:
        self.bus = bus
        self.user = user
        self._drop_ins = (f"{run}/{'user' if user else 'system'}.control", f"{run}/transient")

    def ask_once(self) -> None:
        """What the manager is does not change; asked here, it fails here."""
        _ = self.root, self.version

    @cached_property
    def root(self) -> str:
        """The manager's cgroup, relative to the root of the hierarchy; empty for the system's."""
        return str(self._property(MANAGER, "ControlGroup")).strip("/").removesuffix("init.scope").strip("/")

    @cached_property
    def version(self) -> int:
        number = re.match(r"v?(\d+)", str(self._property(MANAGER, "Version")))
        return int(number[1]) if number else 0

    def start(self, unit: str, properties: Mapping[str, Typed]) -> None:
        """A transient unit; returns when it is there."""
        self.bus.run_job(unit, "StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", _rows(properties.items()), [])

    def stop(self, unit: str) -> None:
        """Ends every process in it: only for what is empty."""
        self.bus.run_job(unit, "StopUnit", "ss", unit, "fail")

    def attach(self, unit: str, pid: int) -> None:
        self.bus.call("AttachProcessesToUnit", "ssau", unit, "", [pid])

    def set(self, unit: str, properties: Mapping[str, Typed]) -> None:
        """All of them or none, until the next boot at most.

        Sorted, because a unit whose drop-ins did not come in the order of their names is shown as changed on disk.
        """
        self.bus.call("SetUnitProperties", "sba(sv)", unit, True, _rows(sorted(properties.items())))

    def get(self, unit: str, name: str) -> Any:
        kind = unit.rpartition(".")[2].capitalize()
        return self._property(f"org.freedesktop.systemd1.{kind}", name, object_path(unit))

    def locate(self, unit: str) -> Handle:
        """Where a running unit is, for adoption. NotFound: it does not run; Denied: it is never touched."""
        if unit in ("-.slice", "init.scope") or _PODS.match(unit) or not _UNIT.fullmatch(unit):
            raise Denied(f"{unit} is never adopted")
        path = str(self.get(unit, "ControlGroup")).strip("/")
        if not path:
            raise NotFound(f"unit {unit} is not running, or systemd does not know it")
        return Handle(inside(path), unit)

    def reload(self) -> None:
        self.bus.call("Reload")

    def ping(self) -> None:
        self.bus.call("Ping", interface="org.freedesktop.DBus.Peer")

    def unit_at(self, path: str) -> str:
        """The unit of this manager whose cgroup is `path`; empty for a cgroup below a unit, and for other managers'."""
        prefix = f"{self.root}/" if self.root else ""
        if not path.startswith(prefix) or path == self.root:
            return ""
        *above, last = path.removeprefix(prefix).split("/")
        known = all(step.endswith(".slice") for step in above) and _UNIT.fullmatch(last)
        return last.removeprefix("_") if known else ""

    def drop_ins(self, unit: str, setting: str) -> list[str]:
        """The files that keep one setting of a unit until the next boot."""
        paths = (f"{folder}/{unit}.d/50-{setting}.conf" for folder in self._drop_ins)
        return [p for p in paths if os.path.exists(p)]

    def _property(self, interface: str, name: str, path: str = "/org/freedesktop/systemd1") -> Any:
        return self.bus.call("Get", "ss", interface, name, path=path, interface=PROPERTIES)


def slice_name(top: str, tier: str = "") -> str:
    """A dash in a slice's name means nesting, so one inside a word is escaped."""
    return "-".join(escape(word, dash=True) for word in (top, tier) if word) + ".slice"


def scope_name(top: str, namespace: str, name: str) -> str:
    """Different workloads have different names: only the last word may hold a dash."""
    unit = f"{escape(top, dash=True)}-{escape(namespace, dash=True)}-{escape(name)}.scope"
    if len(unit) > _MAX_NAME:
        problem = Finding("name", name, f"makes a unit name of {len(unit)} bytes", f"at most {_MAX_NAME}")
        raise Invalid([problem], "workload")
    return unit


def escape(name: str, *, dash: bool = False) -> str:
    """As systemd-escape does; a dash stays where it cannot be misread."""
    text = _UNSAFE.sub(lambda m: "".join(f"\\x{byte:02x}" for byte in m[0].encode()), name)
    return text.replace("-", "\\x2d") if dash else text


def object_path(unit: str) -> str:
    """The D-Bus path of a unit; asking for a property through it loads the unit."""
    label = "".join(
        c if c.isascii() and (c.isalpha() or (c.isdigit() and i)) else "".join(f"_{byte:02x}" for byte in c.encode())
        for i, c in enumerate(unit)
    )
    return f"/org/freedesktop/systemd1/unit/{label}"


def answer(e: CallFailed, what: str) -> Refused | Gone:
    """What a failed call means for the change that it was part of."""
    return Gone() if e.error in GONE else Refused(f"cannot {what}: {e}")


def _rows(properties: Iterable[tuple[str, Typed]]) -> list[list[object]]:
    return [[name, value] for name, value in properties]
