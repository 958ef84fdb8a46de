"""A pod as JSON, read as far as the rules need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.dialects.koordinator.classes import (
    Band,
    KoordClass,
    Labels,
    band_of,
    band_or_default,
    class_of,
    native_class,
)
from j10ce.errors import Finding, Invalid
from j10ce.model.bounds import MOST_ITEMS
from j10ce.model.kube.native import read_amount, without_nulls
from j10ce.model.kube.pod import Pod, requests
from j10ce.model.quantity import Quantity
from j10ce.model.workload import NativeClass

Raw = dict[str, Any]
LISTS: Final = ("initContainers", "containers")


class PodFacts(NamedTuple):
    labels: Labels
    annotations: Mapping[str, str]
    koord: KoordClass  # by its label alone
    band: Band  # by its label or number alone
    resulting: Band  # with defaults
    native: NativeClass
    requests: Mapping[str, Quantity]


def facts(raw: Raw) -> PodFacts:
    """Raises Invalid where it is no pod."""
    spec = raw.get("spec")
    for name, listed in spec.items() if isinstance(spec, dict) else ():
        if name in LISTS and isinstance(listed, list) and len(listed) > MOST_ITEMS:
            finding = Finding(f"spec.{name}", None, f"{len(listed)} containers", f"use at most {MOST_ITEMS}")
            raise Invalid([finding], "Pod")
    try:
        pod = msgspec.convert(without_nulls(raw), Pod, dec_hook=read_amount)
    except (msgspec.ValidationError, RecursionError) as e:
        raise Invalid([Finding("", None, str(e), "send a Pod")], "Pod") from None
    labels, priority = pod.metadata.labels, pod.spec.priority
    native = native_class(c.resources for c in (*pod.spec.init_containers, *pod.spec.containers))
    return PodFacts(
        labels,
        pod.metadata.annotations,
        class_of(labels),
        band_of(labels, priority),
        band_or_default(labels, priority, native),
        native,
        requests(pod),
    )
