"""Parameters of the machine: as the strategy says, and only as far as it says."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.control.parameters import Parameters
from j10ce.model.knob import NODE, Setting
from j10ce.model.parts.strategy import Strategy, SysctlSection
from j10ce.testing import build


def asked(section: SysctlSection) -> dict[str, object]:
    snap = replace(build.snapshot(on=build.node(4, "8Gi")), strategy=Strategy(sysctls=section))
    proposals = list(Parameters(Parameters.Config()).propose(snap))
    assert all(p.setting == Setting(NODE, p.setting.knob) for p in proposals)
    return {p.setting.knob: p.value for p in proposals}


def test_nothing_is_asked_for_where_the_strategy_says_nothing() -> None:
    assert asked(SysctlSection()) == {}


def test_the_kernel_keeps_a_share_of_memory_free() -> None:
    """8 GiB are 8388608 KiB."""
    assert asked(SysctlSection(min_free_kbytes_factor=100)) == {"vm.min_free_kbytes": 83886.0}


def test_no_strategy_takes_the_memory_from_everybody() -> None:
    """A twentieth of 8388608 KiB."""
    assert asked(SysctlSection(min_free_kbytes_factor=9000)) == {"vm.min_free_kbytes": 419430.0}


def test_the_watermarks_are_set_as_they_are_said() -> None:
    assert asked(SysctlSection(watermark_scale_factor=150)) == {"vm.watermark_scale_factor": 150.0}
