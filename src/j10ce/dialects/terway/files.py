"""The files of a node: what its links carry, what each class has together, and which pods are of which class.

Rates are bytes a second there; here they are bits. Every line or pod that is wrong is named; the others count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from j10ce.errors import Finding

GLOBAL: Final = "global_bps_config"
PODS: Final = "pod.json"
LINE: Final = re.compile(r"\s*([a-z0-9_]{1,40})(?:\s*=\s*|\s+)([0-9]{1,19})\s*", re.ASCII)
MOST_TEXT: Final = 1 << 20  # of a file
MOST_PODS: Final = 4096
MOST_RATE: Final = 1 << 50  # bytes a second
BITS: Final = 8
# Of each class its names there: those of the file, and those that Koordinator writes.
CLASSES: Final = {"l0": ("l0", "online"), "l1": ("l1", "offline_l1"), "l2": ("l2", "offline_l2")}
_NAMES: Final = {name: of for of, names in CLASSES.items() for name in names} | {"hw": "hw"}
_KEY: Final = re.compile(rf"({'|'.join(sorted(_NAMES, key=len, reverse=True))})_(tx|rx)_bps_(min|max)")


class ClassRates(NamedTuple):
    """Bits a second that a class has together in one direction; zero is nothing said."""

    least: int = 0
    most: int = 0


class NodeRates(NamedTuple):
    """`global_bps_config`: by class (`hw` is the whole link) and direction, `tx` and `rx`."""

    rates: Mapping[tuple[str, str], ClassRates]
    findings: tuple[Finding, ...] = ()


class TerwayPod(NamedTuple):
    """One pod of `pod.json`; rates are bits a second, zero is none."""

    namespace: str
    name: str
    uid: str
    level: int  # 0 the best
    cgroup: str
    egress: int = 0
    ingress: int = 0


class TerwayPods(NamedTuple):
    pods: tuple[TerwayPod, ...] = ()
    findings: tuple[Finding, ...] = ()


def node_rates(text: str) -> NodeRates:
    """Lines `key value` or `key=value`; empty ones and comments are none."""
    findings: list[Finding] = []
    read: dict[tuple[str, str], dict[str, int]] = {}
    for n, line in enumerate(text[:MOST_TEXT].splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        matched = LINE.fullmatch(line)
        key = _KEY.fullmatch(matched[1]) if matched else None
        if matched is None or key is None or int(matched[2]) > MOST_RATE:
            hint = "write hw_tx_bps_max 125000000, in bytes a second"
            findings.append(Finding(f"{GLOBAL}:{n}", line.strip()[:80], "not a rate that is known", hint))
            continue
        read.setdefault((_NAMES[key[1]], key[2]), {})[key[3]] = int(matched[2]) * BITS
    rates = {of: ClassRates(said.get("min", 0), said.get("max", 0)) for of, said in read.items()}
    return NodeRates(rates, (*findings, *_contradictions(rates)))


def _contradictions(rates: Mapping[tuple[str, str], ClassRates]) -> Iterator[Finding]:
    """As there: no class above the link, nor the two offline ones together, and no minimum above its maximum."""
    for way in ("tx", "rx"):
        whole = rates.get(("hw", way), ClassRates()).most
        offline = [rates.get((of, way), ClassRates()) for of in ("l1", "l2")]
        for of, own in zip(("l1", "l2"), offline, strict=True):
            if own.most and own.least > own.most:
                yield Finding(f"{GLOBAL}.{of}_{way}_bps_min", own.least // BITS, "above its maximum", "use less")
            if whole and own.most > whole:
                yield Finding(
                    f"{GLOBAL}.{of}_{way}_bps_max", own.most // BITS, "more than the link carries", "use less"
                )
        if whole and sum(own.most for own in offline) > whole:
            total = sum(own.most for own in offline) // BITS
            yield Finding(f"{GLOBAL}.l1_{way}_bps_max", total, "l1 and l2 together are more than the link", "use less")


def pods(text: str) -> TerwayPods:
    """`pod.json`: a mapping of pods, whatever its keys."""
    try:
        data = json.loads(text[:MOST_TEXT])
    except (ValueError, RecursionError):
        return TerwayPods(findings=(Finding(PODS, None, "not JSON", "it is what Terway or Koordinator writes"),))
    if not isinstance(data, dict):
        return TerwayPods(findings=(Finding(PODS, None, "not a mapping of pods", "it is what Koordinator writes"),))
    read = [(key, _pod(value)) for key, value in [*data.items()][:MOST_PODS]]
    wrong = [
        Finding(f"{PODS}.{key[:80]}", None, "not a pod", "it needs podName, podNamespace and prio")
        for key, p in read
        if p is None
    ]
    return TerwayPods(tuple(p for _, p in read if p is not None), tuple(wrong))


def _pod(value: Any) -> TerwayPod | None:
    if not isinstance(value, dict):
        return None
    name, namespace, level = _word(value.get("podName")), _word(value.get("podNamespace")), value.get("prio")
    rates = value.get("qosConfig") or {}
    if not (name and namespace and type(level) is int and level in (0, 1, 2) and isinstance(rates, dict)):
        return None
    egress, ingress = (_rate(rates.get(key, 0)) for key in ("egressBandwidth", "ingressBandwidth"))
    if egress is None or ingress is None:
        return None
    uid, cgroup = (v if isinstance(v := value.get(key, ""), str) else "" for key in ("podUID", "cgroupDir"))
    return TerwayPod(namespace, name, uid[:253], level, cgroup[:4096], egress, ingress)


def _word(value: Any) -> str:
    """Empty for what is none."""
    return value if isinstance(value, str) and len(value) <= 253 else ""


def _rate(value: Any) -> int | None:
    """Bytes as bits; None for what is no rate."""
    if type(value) is not int or not 0 <= value <= MOST_RATE:
        return None
    return value * BITS
