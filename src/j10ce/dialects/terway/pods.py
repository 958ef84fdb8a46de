"""What a pod says in Terway's words.

The annotations of Kubernetes are bytes a second there, and bits a second everywhere else: this dialect reads them as
Terway does, so a cluster that changes over keeps its rates. `explain` says what was made of them.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from j10ce.dialects.bandwidth import asked, with_ceilings
from j10ce.model.workload import Note, Workload

CLASS: Final = "k8s.aliyun.com/qos-class"
# Their classes stand above all else; ours order those of one tier, and tiers stand above them.
CLASSES: Final[dict[str, Literal["critical", "normal", "bulk"]]] = {
    "guaranteed": "critical",
    "burstable": "normal",
    "best-effort": "bulk",
}
BITS: Final = 8  # of a byte
PATH: Final = "network.class"


def translate(w: Workload) -> Workload:
    """Doing it twice changes nothing."""
    return with_ceilings(_classed(w), asked(w.annotations), BITS)


def _classed(w: Workload) -> Workload:
    word = w.annotations.get(CLASS)
    if word is None:
        return w
    overrides, origin = w.overrides, f"annotation {CLASS}"
    if word not in CLASSES:
        note = Note("Note", origin, f"not heeded: {word[:40]!r} is none of {', '.join(CLASSES)}")
        return replace(w, overrides=replace(overrides, notes=tuple(dict.fromkeys((*overrides.notes, note)))))
    network = replace(overrides.sections.network, class_=CLASSES[word])
    sections = replace(overrides.sections, network=network)
    return replace(w, overrides=replace(overrides, sections=sections, origins={**overrides.origins, PATH: origin}))
