"""What profiles say of pods: who gives way, and for whom no policy counts."""

from __future__ import annotations

from typing import NamedTuple

from j10ce.model.kinds import QoSProfile, Tier
from j10ce.model.workload import Workload
from j10ce.policy.choose import Chooser
from j10ce.scheduler.book.around import Around
from j10ce.scheduler.book.facts import PodFacts


class Standing(NamedTuple):
    gives_way: bool = False  # best effort: it runs on what is lent
    ignored: bool = False  # no policy counts for it


class Standings:
    """By the profiles that were seen; `around` knows the labels of namespaces."""

    def __init__(self) -> None:
        self._profiles: dict[str, QoSProfile] = {}
        self._chooser = Chooser(())

    def seen(self, profile: QoSProfile) -> None:
        self._profiles[profile.metadata.name] = profile
        self._chooser = Chooser(self._profiles.values())

    def gone(self, profile: QoSProfile) -> None:
        self._profiles.pop(profile.metadata.name, None)
        self._chooser = Chooser(self._profiles.values())

    def of(self, pod: PodFacts, around: Around) -> Standing:
        choice = self._chooser.choose(
            Workload(pod.namespace, pod.name, pod.labels, around.labels_of(pod.namespace), annotations=pod.annotations)
        )
        return Standing(choice.profile is not None and choice.tier is Tier.BESTEFFORT, choice.ignored)
