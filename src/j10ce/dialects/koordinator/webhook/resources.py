"""Amounts of CPU and memory rewritten to those of batch and mid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.classes import Band
from j10ce.dialects.koordinator.webhook.pods import LISTS, Raw
from j10ce.errors import Finding, Invalid
from j10ce.model.quantity import Quantity

RENAMED: Final[Mapping[Band, Mapping[str, str]]] = {
    Band.BATCH: {"cpu": names.BATCH_CPU, "memory": names.BATCH_MEMORY},
    Band.MID: {"cpu": names.MID_CPU, "memory": names.MID_MEMORY},
}
SIDES: Final = ("requests", "limits")


def rewritten(pod: Raw, band: Band) -> tuple[Raw, list[Finding]]:
    """The pod with batch or mid amounts, if that is its band; CPU becomes whole thousandths, memory stays as written.

    An amount that cannot be read stays where it is, and is reported.
    """
    renames = RENAMED.get(band)
    spec = pod.get("spec")
    if renames is None or not isinstance(spec, dict):
        return pod, []
    findings: list[Finding] = []
    fresh = dict(spec)
    for key in LISTS:
        if isinstance(spec.get(key), list):
            fresh[key] = [_container(c, renames, f"spec.{key}[{n}]", findings) for n, c in enumerate(spec[key])]
    if isinstance(spec.get("overhead"), dict):
        fresh["overhead"] = _amounts(spec["overhead"], renames, "spec.overhead", findings)
    return {**pod, "spec": fresh}, findings


def _container(container: Any, renames: Mapping[str, str], path: str, findings: list[Finding]) -> Any:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return container
    fresh = dict(resources)
    for side in SIDES:
        if isinstance(resources.get(side), dict):
            fresh[side] = _amounts(resources[side], renames, f"{path}.resources.{side}", findings)
    extended = {name: amount for name, amount in (fresh.get("limits") or {}).items() if name in renames.values()}
    if extended:  # an extended resource is asked for as much as it is limited
        fresh["requests"] = {**extended, **(fresh.get("requests") or {})}
    return {**container, "resources": fresh}


def _amounts(amounts: Raw, renames: Mapping[str, str], path: str, findings: list[Finding]) -> Raw:
    out: Raw = {}
    for name, amount in amounts.items():
        try:
            known = name in renames and Quantity.parse(amount) is not None
        except (Invalid, TypeError) as e:
            known = False
            hint = e.findings[0].hint if isinstance(e, Invalid) else "write it as 500m or 1Gi"
            findings.append(Finding(f"{path}.{name}", amount, "not a quantity", hint))
        if not known:
            out.setdefault(name, amount)
        else:
            out[renames[name]] = str(Quantity.parse(amount).millicores()) if name == "cpu" else amount
    return out


def extended_spec(pod: Raw) -> str | None:
    """The annotation that repeats the batch amounts of containers; None where they have none."""
    spec = pod.get("spec")
    listed = spec.get("containers") if isinstance(spec, dict) else None
    containers: Raw = {}
    for container in listed if isinstance(listed, list) else ():
        resources = container.get("resources") if isinstance(container, dict) else None
        own = {side: _batch(resources.get(side)) for side in SIDES} if isinstance(resources, dict) else {}
        kept = {side: amounts for side, amounts in own.items() if amounts}
        if kept:
            containers[str(container.get("name", ""))] = kept
    return msgspec.json.encode({"containers": containers}).decode() if containers else None


def _batch(amounts: Any) -> Raw:
    wanted = (names.BATCH_CPU, names.BATCH_MEMORY)
    return {n: str(amounts[n]) for n in wanted if n in amounts} if isinstance(amounts, dict) else {}
