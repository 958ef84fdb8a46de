"""`system-config`: sysctls and their like. What nobody wrote is never set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from j10ce.dialects.koordinator.config.fields import AtLeastOne, Map, NotNegative, Plain, Switch
from j10ce.errors import Finding
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity


class System(Strict, frozen=True, kw_only=True):
    min_free_kbytes_factor: AtLeastOne = UNSET  # ten-thousandths of the memory
    watermark_scale_factor: Annotated[int, Meta(ge=1, le=400)] | UnsetType = UNSET
    memcg_reap_back_ground: Switch = UNSET
    sched_group_identity_enabled: Switch = UNSET
    sched_idle_saver_wmark: NotNegative = UNSET  # nanoseconds
    sched_features: Map | UnsetType = UNSET  # name to truth value
    page_cache_limit_enabled: Switch = UNSET
    total_network_bandwidth: Quantity | UnsetType = UNSET  # bits per second


DEFAULTS: Final[Plain] = {"totalNetworkBandwidth": "0"}


def findings(strategy: System) -> Iterator[Finding]:
    features = strategy.sched_features if strategy.sched_features is not UNSET else {}
    for name, on in features.items():
        if not isinstance(on, bool):
            yield Finding(f"schedFeatures.{name}", on, "not a truth value", "use true or false")
        if not (name.isascii() and name.replace("_", "").isalnum()):
            yield Finding(f"schedFeatures.{name}", on, "not the name of a feature", "use letters, digits and _")
    total = strategy.total_network_bandwidth
    if total is not UNSET and total.percent:
        yield Finding("totalNetworkBandwidth", str(total), "a percentage of nothing", "write bits per second, as 10G")
