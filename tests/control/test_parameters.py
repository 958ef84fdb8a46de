"""Parameters of the machine: as the strategy says, and only as far as it says."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.control.parameters import Parameters
from j10ce.model.knob import NODE
from j10ce.model.parts.strategy import Strategy, SysctlSection
from j10ce.testing import build


def asked(section: SysctlSection) -> dict[str, object]:
    snap = replace(build.snapshot(on=build.node(4, "8Gi")), strategy=Strategy(sysctls=section))
    proposals = list(Parameters(Parameters.Config()).propose(snap))
    assert all(p.setting.target == NODE for p in proposals)
    return {p.setting.name: p.value for p in proposals}


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


def test_features_of_the_scheduler_are_named_as_the_kernel_does() -> None:
    section = SysctlSection(sched_features=("NEXT_BUDDY", "NO_TTWU_QUEUE"))
    assert asked(section) == {"sched.features[NEXT_BUDDY]": 1.0, "sched.features[TTWU_QUEUE]": 0.0}


def test_switches_of_vendors_are_set_as_they_are_said() -> None:
    section = SysctlSection(
        sched_group_identity=True, sched_idle_saver_wmark=4_000_000, memcg_reap_background=False, page_cache_limit=True
    )
    assert asked(section) == {
        "kernel.sched_group_identity_enabled": 1.0,
        "kernel.sched_idle_saver_wmark": 4_000_000.0,
        "mm.memcg_reaper.reap_background": 0.0,
        "mm.pagecache_limit.enabled": 1.0,
    }
