"""The controllers that are there from the start, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from j10ce.control.cache.cache import Caches
from j10ce.control.controller import Controller
from j10ce.control.core_sched import CoreSched
from j10ce.control.cpu.bursting.burst import CpuBurst
from j10ce.control.cpu.identity import CpuIdentity
from j10ce.control.cpu.idle import CpuIdle
from j10ce.control.cpu.realtime import Realtime
from j10ce.control.cpu.suppression.suppress import CpuSuppress
from j10ce.control.disk.disk import DiskUse
from j10ce.control.eviction.eviction import Eviction
from j10ce.control.floors import Floors
from j10ce.control.interference.interference import Interference
from j10ce.control.lent import Lent
from j10ce.control.limits import Limits
from j10ce.control.memory.cap import MemoryCap
from j10ce.control.memory.oom import OomOrder
from j10ce.control.memory.qos import MemoryQos
from j10ce.control.memory.reclaim import MemoryReclaim
from j10ce.control.network.network import Network
from j10ce.control.own import Own
from j10ce.control.parameters import Parameters
from j10ce.errors import Finding, Invalid
from j10ce.model import schema

# Each class has a `Config` struct and takes one; mypy cannot say that of a `type[Controller]`.
BUILTIN: Final[Mapping[str, type[Any]]] = {
    c.name: c
    for c in (
        Floors,
        Limits,
        Lent,
        MemoryQos,
        MemoryCap,
        MemoryReclaim,
        OomOrder,
        CpuIdle,
        CpuIdentity,
        Realtime,
        CpuSuppress,
        CpuBurst,
        Interference,
        Caches,
        CoreSched,
        Network,
        DiskUse,
        Eviction,
        Own,
        Parameters,
    )
}


def build(config: Mapping[str, Mapping[str, object]]) -> list[Controller]:
    """Every built-in controller, with its settings where `config` has some; raises Invalid with all findings."""
    findings = [
        Finding(f"controllers.{name}", None, "unknown controller", "use one of " + ", ".join(BUILTIN))
        for name in config
        if name not in BUILTIN
    ]
    built: list[Controller] = []
    for name, controller in BUILTIN.items():
        try:
            built.append(controller(schema.convert(dict(config.get(name, {})), controller.Config)))
        except Invalid as e:
            findings += [f._replace(path=f"controllers.{name}.{f.path}".rstrip(".")) for f in e.findings]
    if findings:
        raise Invalid(findings, "controllers")
    return built
