"""What the ConfigMap's webhook refuses: what cannot be read, what is out of range, and entries that want one node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from j10ce.dialects.koordinator.config.keys import OPAQUE, SHAPES, KeyConfig, NodeEntry, read_key
from j10ce.dialects.koordinator.config.layers import NodeWords, effective
from j10ce.dialects.koordinator.config.qos import ResourceQos
from j10ce.dialects.koordinator.config.qos_rules import network
from j10ce.dialects.koordinator.config.system import System
from j10ce.dialects.koordinator.reading import bearable, below, read_text
from j10ce.errors import Finding
from j10ce.model.kinds import Requirement, Selector
from j10ce.policy.select import Labels, matches

# As the reference spells them; the missing letter is theirs.
Reason = Literal["ParseConfigFail", "ConfigParamInvalid", "NodeStrategiesOverlap", "ExistNodeConfict"]
MOST_NAMED: Final = 5  # nodes that a refusal names
MOST_PAIRS: Final = 16  # of entries of one key that want one node: who mends these hears of the others


class ConfigRefusal(NamedTuple):
    reason: Reason
    finding: Finding


def refusals(
    data: Mapping[str, str], nodes: Mapping[str, Labels], extensions: Collection[str] = ()
) -> list[ConfigRefusal]:
    """Why a ConfigMap is refused; empty: it is admitted. `nodes` are the labels of all nodes by name."""
    out: list[ConfigRefusal] = []
    read: dict[str, KeyConfig] = {}
    for key, text in data.items():
        shape = SHAPES.get(key) or (OPAQUE if key in extensions else None)
        if shape is None:
            continue  # told by who reads the keys; a third party may own it
        config, findings = read_key(key, text, shape)
        parsed = isinstance(read_text(text, key).data, dict)
        reason: Reason = "ConfigParamInvalid" if parsed else "ParseConfigFail"
        out += [ConfigRefusal(reason, finding) for finding in findings if not bearable(finding)]
        if config is not None:
            read[key] = config
            out += _entries(f"{key}.{shape.entries}", config.entries, nodes)
    return out + [ConfigRefusal("ConfigParamInvalid", finding) for finding in _bandwidth(read)]


def _bandwidth(read: Mapping[str, KeyConfig]) -> Iterator[Finding]:
    """What classes ask for together, beside the bandwidth of another key."""
    nowhere = NodeWords({}, {})
    total = effective("system-config", read.get("system-config"), nowhere).strategy
    classes = effective("resource-qos-config", read.get("resource-qos-config"), nowhere).strategy
    whole = total.total_network_bandwidth if isinstance(total, System) else UNSET
    if isinstance(classes, ResourceQos) and whole is not UNSET:
        yield from below("resource-qos-config.clusterStrategy", network(classes, whole))


def _entries(path: str, entries: Sequence[NodeEntry], nodes: Mapping[str, Labels]) -> Iterator[ConfigRefusal]:
    for entry in entries:
        if entry.selector == Selector():
            finding = Finding(f"{path}.nodeSelector", entry.name, "selects every node", "write it as cluster strategy")
            yield ConfigRefusal("ConfigParamInvalid", finding)
    for one, other in islice(_overlapping(entries), MOST_PAIRS):
        problem = f"may select nodes that {other.name or 'another entry'} selects"
        hint = "let one label have different values in both"
        yield ConfigRefusal("NodeStrategiesOverlap", Finding(path, one.name, problem, hint))
        shared = [name for name, labels in nodes.items() if _both(one.selector, other.selector, labels)]
        if shared:
            named = ", ".join(sorted(shared)[:MOST_NAMED])
            problem = f"selects nodes that {other.name or 'another entry'} selects: {named}"
            yield ConfigRefusal("ExistNodeConfict", Finding(path, one.name, problem, hint))


def _overlapping(entries: Iterable[NodeEntry]) -> Iterator[tuple[NodeEntry, NodeEntry]]:
    asking = [(entry, _wanted(entry.selector)) for entry in entries]
    for (one, first), (other, second) in combinations(asking, 2):
        if _compatible(first, second):
            yield one, other


def _both(one: Selector, other: Selector, labels: Labels) -> bool:
    return matches(one, labels) and matches(other, labels)


class Wanted(NamedTuple):
    """What a selector wants of one label."""

    allowed: frozenset[str] | None = None  # None: any value
    banned: frozenset[str] = frozenset()
    present: bool = False
    absent: bool = False

    def also(self, other: Wanted) -> Wanted:
        allowed = self.allowed if other.allowed is None else other.allowed
        if self.allowed is not None and other.allowed is not None:
            allowed = self.allowed & other.allowed
        return Wanted(
            allowed,
            self.banned | other.banned if self.banned and other.banned else self.banned or other.banned,
            self.present or other.present,
            self.absent or other.absent,
        )

    @property
    def possible(self) -> bool:
        return not (self.present and self.absent) and (self.allowed is None or not self.allowed <= self.banned)


def overlap(one: Selector, other: Selector) -> bool:
    """Whether some node could be selected by both: keys are independent, so each is looked at alone."""
    return _compatible(_wanted(one), _wanted(other))


def _compatible(one: Mapping[str, Wanted], other: Mapping[str, Wanted]) -> bool:
    few, many = sorted((one, other), key=len)
    return (
        all(wanted.possible for wanted in one.values())
        and all(wanted.possible for wanted in other.values())
        and all(wanted.also(many[key]).possible for key, wanted in few.items() if key in many)
    )


def _wanted(selector: Selector) -> dict[str, Wanted]:
    wanted = {key: Wanted(frozenset((value,)), present=True) for key, value in selector.match_labels.items()}
    for r in selector.match_expressions:
        wanted[r.key] = wanted.get(r.key, Wanted()).also(_of(r))
    return wanted


def _of(r: Requirement) -> Wanted:
    match r.operator:
        case "In":
            return Wanted(frozenset(r.values), present=True)
        case "NotIn":
            return Wanted(banned=frozenset(r.values))
        case "Exists":
            return Wanted(present=True)
        case "DoesNotExist":
            return Wanted(absent=True)
