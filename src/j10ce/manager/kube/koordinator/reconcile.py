"""Which NodeStrategies to write and to delete, so that those of the dialect say what its ConfigMap says. Pure.

The objects are the last good value of their key: of a key that cannot be read they stay, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from j10ce.dialects.koordinator.config.keys import SHAPES
from j10ce.dialects.koordinator.native.node_layers import SYSTEM_CPUS, KnownNode
from j10ce.dialects.koordinator.native.strategies import Generated, generated
from j10ce.dialects.koordinator.native.words import DIALECT, DIALECT_LABEL, KEY_LABEL
from j10ce.errors import Finding
from j10ce.model.kinds import NodeStrategy

SAID_ANNOTATION: Final = "j10ce.io/dialect-findings"  # on generated objects: what is wrong with their key
MOST_SAID: Final = 1024  # characters of it
GONE: Final = "the ConfigMap was deleted: the last good value stays"


class StrategyChanges(NamedTuple):
    create: tuple[NodeStrategy, ...] = ()
    update: tuple[NodeStrategy, ...] = ()  # each with the revision that it replaces
    delete: tuple[NodeStrategy, ...] = ()
    taken: tuple[str, ...] = ()  # names that objects of others have

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


def changes(existing: Iterable[NodeStrategy], made: Generated) -> StrategyChanges:
    """Objects without our label are nobody's business here."""
    there = {s.metadata.name: s for s in existing}
    wanted = {s.metadata.name: s for s in _annotated(made)}
    ours = {name: s for name, s in there.items() if is_ours(s)}
    kept = (s for name, s in ours.items() if name not in wanted and _key(s) not in made.objects)
    updates = [
        *(_updated(ours[name], wish) for name, wish in wanted.items() if name in ours),
        *(_complaining(s, complaint(_key(s), made.findings)) for s in kept),
    ]
    return StrategyChanges(
        tuple(wish for name, wish in wanted.items() if name not in there),
        tuple(s for s in updates if s != there[s.metadata.name]),
        tuple(s for name, s in ours.items() if name not in wanted and _key(s) in made.objects),
        tuple(name for name in wanted if name in there and name not in ours),
    )


def deleted(nodes: Sequence[KnownNode]) -> Generated:
    """While there is no ConfigMap: what was made of its keys stays and says why; what nodes say alone still counts."""
    made = generated({}, nodes)
    stays = (Finding(key, None, GONE, "create it again, or delete the strategies") for key in SHAPES)
    return Generated({SYSTEM_CPUS: made.objects[SYSTEM_CPUS]}, (*stays, *made.findings))


def is_ours(strategy: NodeStrategy) -> bool:
    return strategy.metadata.labels.get(DIALECT_LABEL) == DIALECT


def complaint(key: str, findings: Iterable[Finding]) -> str:
    """What is wrong with one key, for people."""
    return "; ".join(str(f) for f in findings if f.path.split(".")[0] == key)[:MOST_SAID]


def _key(strategy: NodeStrategy) -> str:
    return strategy.metadata.labels.get(KEY_LABEL, "")


def _annotated(made: Generated) -> Iterator[NodeStrategy]:
    for key, strategies in made.objects.items():
        said = complaint(key, made.findings)
        yield from (_complaining(s, said) for s in strategies)


def _complaining(strategy: NodeStrategy, said: str) -> NodeStrategy:
    others = {k: v for k, v in strategy.metadata.annotations.items() if k != SAID_ANNOTATION}
    annotations = {**others, **({SAID_ANNOTATION: said} if said else {})}
    return replace(strategy, metadata=replace(strategy.metadata, annotations=annotations))


def _updated(there: NodeStrategy, wish: NodeStrategy) -> NodeStrategy:
    """What others wrote beside it stays: labels, annotations, how it is rolled out."""
    said = _complaining(there, wish.metadata.annotations.get(SAID_ANNOTATION, ""))
    labels = {**there.metadata.labels, **wish.metadata.labels}
    spec = replace(wish.spec, rollout=there.spec.rollout)
    return replace(said, metadata=replace(said.metadata, labels=labels), spec=spec)
