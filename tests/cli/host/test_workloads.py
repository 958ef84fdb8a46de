"""What run and adopt say beside the workload's name."""

from __future__ import annotations

from j10ce.cli.host.workloads import _notes


def test_why_a_minimum_is_not_upheld_is_said_once() -> None:
    why = "asks for cpu 64: cpu 64 wanted, 2 free of 2"
    notes = ["limit raised to the floor", f"Unprotected: Workload/default/db {why}"]
    assert _notes({"notes": notes, "otherNotes": notes[:1], "unmet": [why]}) == [
        "limit raised to the floor",
        f"minimum not upheld: {why}",
    ]
