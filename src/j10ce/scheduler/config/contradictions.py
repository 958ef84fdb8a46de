"""Arguments that are right one by one, and wrong together."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from j10ce.errors import Finding
from j10ce.scheduler.config import arguments as given


def contradictions(value: Struct, path: str) -> Iterable[Finding]:
    match value:
        case given.FitArguments(scoring_strategy=strategy):
            yield from _shape(strategy, f"{path}.scoringStrategy")
        case given.SpreadArguments(default_constraints=own, defaulting_type="System") if own:
            hint = "use defaultingType: List for constraints of your own"
            yield Finding(f"{path}.defaultConstraints", None, "not looked at", hint)
        case given.SpreadArguments(default_constraints=own):
            for n, constraint in enumerate(own):
                where = f"{path}.defaultConstraints[{n}]"
                if constraint.label_selector is not None:
                    hint = "leave it out: services and owners say who is alike"
                    yield Finding(f"{where}.labelSelector", None, "a default has none", hint)
                if not constraint.topology_key:
                    yield Finding(f"{where}.topologyKey", "", "empty", "name a label of nodes")
                if constraint.max_skew < 1:
                    yield Finding(f"{where}.maxSkew", constraint.max_skew, "too small", "use 1 or more")
        case given.PreemptionArguments(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0):
            yield Finding(path, None, "no node would be looked at", "set one of the two above zero")
        case given.QosArguments(periods=periods):
            ends = [period.seconds for period in periods]
            if not ends or ends[0] <= 0 or ends != sorted(set(ends)):
                hint = "write when SLOs are to be met, in ascending order, such as [10m, 25m, 1h]"
                yield Finding(f"{path}.periods", [str(period) for period in periods], "no order of times", hint)
        case _:
            return


def _shape(strategy: given.ScoringStrategy, path: str) -> Iterable[Finding]:
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio" and ratio is None:
        yield Finding(f"{path}.requestedToCapacityRatio", None, "missing", "write its shape")
    at = [point.utilization for point in ratio.shape] if ratio else []
    if at != sorted(set(at)):
        hint = "begin with the smallest, and name each once"
        yield Finding(f"{path}.requestedToCapacityRatio.shape", at, "not in the order of utilization", hint)
