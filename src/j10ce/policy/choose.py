"""Which profile a workload runs under: its label, else the best selector, else its namespace's label; its native class
only classifies it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.model.kinds import IGNORE_LABEL, PROFILE_LABEL, QoSProfile, Tier
from j10ce.model.workload import Workload
from j10ce.policy.profiles import TRUSTED_LABEL, builtin, canonical, may_choose, unheeded
from j10ce.policy.select import Labels, Test, compiled

CLASSIFIED: Final = {"Guaranteed": Tier.SENSITIVE, "Burstable": Tier.STANDARD, "BestEffort": Tier.BESTEFFORT}


class Choice(NamedTuple):
    """`profile` None: nobody chose, the tier is a classification. `ignored`: policies do not apply either."""

    profile: QoSProfile | None
    tier: Tier
    why: str
    notes: tuple[str, ...] = ()
    ignored: bool = False


class Chooser:
    """The profiles of one document, compiled once."""

    def __init__(self, profiles: Iterable[QoSProfile]) -> None:
        self._named = {p.metadata.name: p for p in profiles}
        self._system = self._named.get("system") or next(p for p in builtin() if p.metadata.name == "system")
        # Higher priority first, then by name.
        ordered = sorted(self._named.values(), key=lambda p: (-p.spec.priority, p.metadata.name))
        self._unheeded = {name: notes for name, p in self._named.items() if (notes := unheeded(p))}
        self._selecting: list[tuple[Test, QoSProfile]] = [
            (compiled(p.spec.selector), p) for p in ordered if p.spec.selector is not UNSET
        ]

    def choose(self, w: Workload) -> Choice:
        if ignored(w):
            return Choice(None, _classified(w), f"label {IGNORE_LABEL}", ignored=True)
        choice, notes = self._named_by(w.labels, f"label {PROFILE_LABEL}", w)
        if choice is None:
            choice, denied = self._by_overrides(w)
            notes += denied
        if choice is None:
            choice, denied = self._by_selector(w)
            notes += denied
        if choice is None:
            choice, more = self._named_by(w.namespace_labels, f"label {PROFILE_LABEL} of namespace {w.namespace}", w)
            notes += more
        if choice is None:
            return Choice(None, _classified(w), f"native class {w.native_class}", notes)
        if w.critical and choice.tier is not Tier.SYSTEM:
            notes = (*notes, f"critical workloads stay in tier system, profile {_name(choice)} was not taken")
            choice = Choice(self._system, Tier.SYSTEM, "critical")
        return choice._replace(notes=(*notes, *self._unheeded.get(_name(choice), ())))

    def _named_by(self, labels: Labels, why: str, w: Workload) -> tuple[Choice | None, tuple[str, ...]]:
        asked = labels.get(PROFILE_LABEL)
        if not asked:
            return None, ()
        profile = self._named.get(canonical(asked))
        if profile is None:
            return None, (f"no QoSProfile is named {asked!r}",)
        if not may_choose(profile, w.namespace_labels):
            return None, (f"namespace {w.namespace!r} may not choose profile {profile.metadata.name!r}",)
        return Choice(profile, profile.spec.tier, why), ()

    def _by_overrides(self, w: Workload) -> tuple[Choice | None, tuple[str, ...]]:
        """The first that is there and that its namespace may have."""
        notes: tuple[str, ...] = ()
        why = w.overrides.origins.get("profile", "what is said of it alone")
        for name in w.overrides.profiles:
            profile = self._named.get(name)
            if profile is not None and may_choose(profile, w.namespace_labels):
                return Choice(profile, profile.spec.tier, why), notes
            missing = f"no QoSProfile is named {name!r}, which {why} asks for"
            denied = f"namespace {w.namespace!r} may not have profile {name!r}, which {why} asks for"
            notes += (missing if profile is None else f"{denied}; label the namespace {TRUSTED_LABEL}=true",)
        return None, notes

    def _by_selector(self, w: Workload) -> tuple[Choice | None, tuple[str, ...]]:
        denied: tuple[str, ...] = ()
        for test, profile in self._selecting:
            if not test(w.labels):
                continue
            if may_choose(profile, w.namespace_labels):
                return Choice(profile, profile.spec.tier, f"its selector, priority {profile.spec.priority}"), denied
            name = profile.metadata.name
            denied += (f"namespace {w.namespace!r} may not have profile {name!r}, whose selector matches",)
        return None, denied


def ignored(w: Workload) -> bool:
    """No policy counts for it, whatever selects it."""
    return "true" in (w.labels.get(IGNORE_LABEL), w.namespace_labels.get(IGNORE_LABEL))


def _classified(w: Workload) -> Tier:
    if w.critical:
        return Tier.SYSTEM
    tier = CLASSIFIED[w.native_class]
    # What we place sits in the cgroup of its tier: nobody lands among best-effort without having been sent there.
    return Tier.STANDARD if w.handle.made and tier is Tier.BESTEFFORT else tier


def _name(choice: Choice) -> str:
    return choice.profile.metadata.name if choice.profile else ""
