"""doctor and `up` say what a machine can enforce, in as few lines as there are reasons."""

from __future__ import annotations

from typing import Any

from j10ce.cli.host.doctor import short_doctor

WORKS = {"feature": "cpu.weight", "ok": True, "via": "cgroup1"}
OLD = "cgroup v2"
OF_VENDORS = {"feature": "memory.wmark_ratio", "ok": False, "needs": "a vendor's kernel"}


def lacking(feature: str) -> dict[str, Any]:
    return {"feature": feature, "ok": False, "needs": OLD}


def test_what_is_missing_for_one_reason_is_one_line() -> None:
    report = {"capabilities": [WORKS, lacking("memory.min"), lacking("memory.low")]}
    assert short_doctor(report, privileged=True).splitlines() == [
        "can enforce: cpu.weight",
        "missing: memory.min, memory.low: needs cgroup v2",
        "`j10ce-qos doctor` says what is done instead",
    ]


def test_up_does_not_miss_what_no_mainline_kernel_has() -> None:
    assert short_doctor({"capabilities": [WORKS, OF_VENDORS]}, privileged=True) == "can enforce: cpu.weight"


def test_a_vendors_knob_that_works_is_named() -> None:
    report = {"capabilities": [WORKS, {**OF_VENDORS, "ok": True}]}
    assert short_doctor(report, privileged=False) == "could enforce as root: cpu.weight, memory.wmark_ratio"
