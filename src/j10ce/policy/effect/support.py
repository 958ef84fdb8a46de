"""What this machine cannot enforce, in words."""

from __future__ import annotations

from j10ce.model.snapshot import Snapshot


def missing(snap: Snapshot, knob: str) -> str:
    support = snap.support.get(knob)
    needs = f": needs {support.needs}" if support and support.needs else ""
    instead = f"; instead: {support.instead}" if support and support.instead else ""
    return f"{knob} is not enforceable here{needs}{instead}"
