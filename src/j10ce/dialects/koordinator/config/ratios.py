"""`cpu-normalization-config` and `resource-amplification-config`: machines that count for more than they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.config.fields import LEAST_RATIO, MOST_RATIO, Flag, Map, Plain, Ratio
from j10ce.dialects.koordinator.reading import checked
from j10ce.errors import Finding
from j10ce.model.parts.strict import Strict


class RatioModel(Strict, frozen=True, kw_only=True):
    """Of one model of CPU."""

    base_ratio: Ratio = UNSET
    hyper_thread_enabled_ratio: Ratio = UNSET
    turbo_enabled_ratio: Ratio = UNSET
    hyper_thread_turbo_enabled_ratio: Ratio = UNSET


class CpuNormalization(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    default_ratio: Ratio = UNSET
    ratio_model: Map | UnsetType = UNSET  # model of CPU to RatioModel

    def model(self, name: str) -> RatioModel | None:
        raw = self.ratio_model.get(name) if self.ratio_model is not UNSET else None
        return None if raw is None else checked(raw, RatioModel, "")[0]


class Amplification(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    resource_amplification_ratio: Map | UnsetType = UNSET  # resource to ratio


NORMALIZATION_DEFAULTS: Final[Plain] = {"enable": False}
AMPLIFICATION_DEFAULTS: Final[Plain] = {"enable": False}


def normalization_findings(strategy: CpuNormalization) -> Iterator[Finding]:
    for name, raw in strategy.ratio_model.items() if strategy.ratio_model is not UNSET else ():
        yield from checked(raw, RatioModel, f"ratioModel.{name}")[1]


def amplification_findings(strategy: Amplification) -> Iterator[Finding]:
    ratios = strategy.resource_amplification_ratio
    for name, ratio in ratios.items() if ratios is not UNSET else ():
        number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
        if not number or not LEAST_RATIO <= ratio <= MOST_RATIO:
            hint = f"use a number from {LEAST_RATIO:g} to {MOST_RATIO:g}"
            yield Finding(f"resourceAmplificationRatio.{name}", ratio, "out of range", hint)
