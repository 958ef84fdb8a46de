"""An operator's freeze on settings: how it is written, which settings it covers, and whether it cuts a floor."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.errors import Finding, Invalid
from j10ce.model.bounds import Text, Word, Words
from j10ce.model.kinds import Hold, HoldSpec, Meta, Strict
from j10ce.model.knob import KNOBS, ROOT, Setting, TargetId, Value, parse_value, read_names
from j10ce.model.plan import HeldSetting
from j10ce.policy.lifetime import ends, over
from j10ce.policy.reach import home
from j10ce.policy.validation import syntax
from j10ce.policy.validation.validate import DEEDS, knobs

LONGEST_S: Final = 30 * 86400.0


class HoldRequest(Strict, frozen=True, kw_only=True):
    target: Word
    knobs: Words
    for_seconds: float
    why: Text
    who: Word = ""
    value: Word | UnsetType = UNSET
    breaks_reservation: bool = False


def from_request(request: HoldRequest, wall: float) -> Hold:
    """Raises Invalid with every finding."""
    findings = [*knobs("knobs", request.knobs)]
    findings += syntax.target("target", request.target)
    if request.target == ROOT and not isinstance(request.value, UnsetType):
        findings.append(Finding("value", request.value, "the root's own settings are never written", "leave value out"))
    if not request.knobs:
        findings.append(Finding("knobs", None, "empty", "name at least one knob"))
    if not 0 < request.for_seconds <= LONGEST_S:
        findings.append(Finding("forSeconds", request.for_seconds, "out of range", "hold for at most 30 days"))
    if not request.why.strip():
        findings.append(Finding("why", request.why, "empty", "say why: everyone who asks will see it"))
    findings += syntax.reason("why", request.why)
    if not findings and not isinstance(request.value, UnsetType):
        named = dict.fromkeys(knob for name in request.knobs for knob, _ in read_names(name))
        findings += [f for k in named if isinstance(f := read_value(k, request.value), Finding)]
    if findings:
        raise Invalid(findings, "hold")
    expires = datetime.fromtimestamp(wall + request.for_seconds, UTC).replace(microsecond=0)
    spec = HoldSpec(
        target=request.target,
        knobs=request.knobs,
        expires=expires,
        why=request.why,
        who=request.who,
        value=request.value,
        breaks_reservation=request.breaks_reservation,
    )
    made = datetime.fromtimestamp(int(wall), UTC)
    return Hold(metadata=Meta(name=_name(spec), namespace=home(request.target), creation_timestamp=made), spec=spec)


def read_value(knob: str, text: str) -> Value | Finding:
    """A value as `explain` shows it or as quantities are written: `max`, `0-3`, `50000`, `1Gi`."""
    try:
        return parse_value(knob, text)
    except ValueError as e:
        return Finding("value", text, f"not a value of {knob}", str(e))


def held(holds: Iterable[Hold], wall: float) -> list[HeldSetting]:
    """Every setting under a hold that has not expired."""
    return [setting for hold in live(holds, wall) for setting in _settings(hold)]


class Read:
    """The same for a ring that asks at every tick: the value of a hold is read once, when it arrives."""

    def __init__(self) -> None:
        self._settings: dict[str, tuple[Hold, tuple[HeldSetting, ...]]] = {}  # by the hold's name

    def held(self, holds: Iterable[Hold], wall: float) -> list[HeldSetting]:
        self._settings = {h.metadata.name: self._of(h) for h in live(holds, wall)}
        return [setting for _, settings in self._settings.values() for setting in settings]

    def _of(self, hold: Hold) -> tuple[Hold, tuple[HeldSetting, ...]]:
        known = self._settings.get(hold.metadata.name)
        return known if known and known[0] is hold else (hold, tuple(_settings(hold)))


def spread(holds: Iterable[HeldSetting], known: Collection[Setting]) -> Iterator[HeldSetting]:
    """A hold on a knob that has several values, and names none of them, is one on each that is there."""
    for hold in holds:
        s = hold.setting
        if s.instance or s.knob not in KNOBS or not KNOBS[s.knob].several:
            yield hold
            continue
        yield from (hold._replace(setting=k) for k in known if (k.target, k.knob) == (s.target, s.knob))


def holders(holds: Iterable[HeldSetting]) -> dict[Setting, str]:
    """By whose word each setting is held."""
    return {h.setting: f"by {h.who or 'the control plane'}: {h.why}" for h in holds}


def _settings(hold: Hold) -> Iterator[HeldSetting]:
    spec = hold.spec
    names = [pair for name in sorted(spec.knobs) for pair in meant(name)]
    for knob, instance in names:
        if knob not in KNOBS and knob not in DEEDS:
            continue
        unsaid = isinstance(spec.value, UnsetType) or knob in DEEDS
        value = None if unsaid else read_value(knob, str(spec.value))
        if not isinstance(value, Finding):
            setting = Setting(TargetId(spec.target), knob, instance)
            yield HeldSetting(setting, value, ends(hold), spec.who, spec.why, spec.breaks_reservation)


def in_force(ordered: Iterable[Hold], local: Iterable[Hold], released: Collection[str]) -> tuple[Hold, ...]:
    """Those of the control plane and those made on this host, each once, without those that ended here."""
    every = {h.metadata.name: h for h in (*ordered, *local)}
    return tuple(h for name, h in every.items() if name not in released)


def live(holds: Iterable[Hold], wall: float) -> tuple[Hold, ...]:
    return tuple(h for h in holds if not over(h, wall))


def without(holds: Iterable[Hold], target: str, knobs: frozenset[str]) -> tuple[tuple[Hold, ...], list[str]]:
    """(the holds that stay, the knobs released): all of a target's, or those on the named knobs, by what they mean:
    `io.max` means that of every disk, and all four."""
    kept: list[Hold] = []
    released: list[str] = []
    named = frozenset(chain.from_iterable(map(meant, knobs)))
    for hold in holds:
        ends = {k for k in hold.spec.knobs if not knobs or named.issuperset(meant(k)) or _widely(k) <= named}
        if hold.spec.target != target or not ends:
            kept.append(hold)
            continue
        stay = tuple(k for k in hold.spec.knobs if k not in ends)
        released += [k for k in hold.spec.knobs if k not in stay]
        if stay:
            spec = replace(hold.spec, knobs=stay)
            kept.append(Hold(metadata=replace(hold.metadata, name=_name(spec)), spec=spec))
    return tuple(kept), released


def meant(name: str) -> tuple[tuple[str, str], ...]:
    """Every (knob, instance) that a hold's name is about: a deed is one, too."""
    return read_names(name) or ((name, ""),)


def _widely(name: str) -> frozenset[tuple[str, str]]:
    """The same of every instance."""
    return frozenset((knob, "") for knob, _ in meant(name))


def _name(spec: HoldSpec) -> str:
    identity = f"{spec.target} {' '.join(spec.knobs)} {spec.expires.isoformat()} {spec.who}"
    return f"hold-{hashlib.blake2b(identity.encode(), digest_size=5).hexdigest()}"
