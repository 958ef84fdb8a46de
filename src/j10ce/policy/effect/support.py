"""What this machine cannot enforce, in words."""

from __future__ import annotations

from typing import NamedTuple

from j10ce.model.snapshot import Snapshot


class Lack(NamedTuple):
    """Why a knob cannot be set here, and what is done in its place."""

    why: str
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.why}; instead: {self.instead}" if self.instead else self.why


def lacking(snap: Snapshot, knob: str) -> Lack:
    support = snap.support.get(knob)
    if support is None:
        return Lack("not enforceable here: no back end knows it")
    return Lack(f"not enforceable here: needs {support.needs or 'another kernel'}", support.instead)


def missing(snap: Snapshot, knob: str) -> str:
    return f"{knob} is {lacking(snap, knob)}"
