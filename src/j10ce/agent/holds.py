"""An operator's freeze on settings: how it is written, which settings it covers, and whether it cuts a floor."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.errors import Finding, Invalid
from j10ce.model.kinds import Hold, HoldSpec, Meta, Strict
from j10ce.model.knob import KNOBS, ROOT, Setting, TargetId, Value, parse_value
from j10ce.model.plan import HeldSetting
from j10ce.policy import syntax

LONGEST_S: Final = 30 * 86400.0


class HoldRequest(Strict, frozen=True, kw_only=True):
    target: str
    knobs: tuple[str, ...]
    for_seconds: float
    why: str
    who: str = ""
    value: str | UnsetType = UNSET
    breaks_reservation: bool = False


def from_request(request: HoldRequest, wall: float) -> Hold:
    """Raises Invalid with every finding."""
    findings = [
        Finding("knobs", k, "unknown knob", "use one of " + ", ".join(KNOBS)) for k in request.knobs if k not in KNOBS
    ]
    findings += syntax.target("target", request.target)
    if request.target == ROOT and not isinstance(request.value, UnsetType):
        findings.append(Finding("value", request.value, "the root's own settings are never written", "leave value out"))
    if not request.knobs:
        findings.append(Finding("knobs", None, "empty", "name at least one knob"))
    if not 0 < request.for_seconds <= LONGEST_S:
        findings.append(Finding("forSeconds", request.for_seconds, "out of range", "hold for at most 30 days"))
    if not request.why.strip():
        findings.append(Finding("why", request.why, "empty", "say why: everyone who asks will see it"))
    if not findings and not isinstance(request.value, UnsetType):
        findings += [f for k in request.knobs if isinstance(f := read_value(k, request.value), Finding)]
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
    return Hold(metadata=Meta(name=_name(spec), namespace=_namespace(request.target)), spec=spec)


def read_value(knob: str, text: str) -> Value | Finding:
    """A value as `explain` shows it or as quantities are written: `max`, `0-3`, `50000`, `1Gi`."""
    try:
        return parse_value(knob, text)
    except ValueError as e:
        return Finding("value", text, f"not a value of {knob}", str(e))


def held(holds: Iterable[Hold], wall: float) -> list[HeldSetting]:
    """Every setting under a hold that has not expired."""
    return [setting for hold in holds if hold.spec.expires.timestamp() > wall for setting in _settings(hold)]


def _settings(hold: Hold) -> Iterator[HeldSetting]:
    spec = hold.spec
    for knob in (k for k in spec.knobs if k in KNOBS):
        value = None if isinstance(spec.value, UnsetType) else read_value(knob, spec.value)
        if not isinstance(value, Finding):
            setting = Setting(TargetId(spec.target), knob)
            yield HeldSetting(setting, value, spec.expires.timestamp(), spec.who, spec.why, spec.breaks_reservation)


def live(holds: Iterable[Hold], wall: float) -> tuple[Hold, ...]:
    return tuple(h for h in holds if h.spec.expires.timestamp() > wall)


def without(holds: Iterable[Hold], target: str, knobs: frozenset[str]) -> tuple[tuple[Hold, ...], list[str]]:
    """(the holds that stay, the knobs released): all of a target's, or those on the named knobs."""
    kept: list[Hold] = []
    released: list[str] = []
    for hold in holds:
        hit = hold.spec.target == target and (not knobs or bool(knobs & set(hold.spec.knobs)))
        if not hit:
            kept.append(hold)
            continue
        stay = tuple(k for k in hold.spec.knobs if knobs and k not in knobs)
        released += [k for k in hold.spec.knobs if k not in stay]
        if stay:
            spec = replace(hold.spec, knobs=stay)
            kept.append(Hold(metadata=Meta(name=_name(spec), namespace=hold.metadata.namespace), spec=spec))
    return tuple(kept), released


def _name(spec: HoldSpec) -> str:
    told = f"{spec.target} {' '.join(spec.knobs)} {spec.expires.isoformat()} {spec.who}"
    return f"hold-{hashlib.blake2b(told.encode(), digest_size=5).hexdigest()}"


def _namespace(target: str) -> str:
    kind, _, rest = target.partition("/")
    return rest.split("/")[0] if kind in ("workload", "part") else "j10ce-system"
