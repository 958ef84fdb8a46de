"""The leader keeps NodeStrategies as the ConfigMap and the nodes say, and says what is wrong with it.

What it wrote is the last good value: a key that breaks, a ConfigMap that is deleted and a leader that starts anew
leave it as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import structlog

from j10ce.dialects.koordinator.config.keys import SHAPES
from j10ce.dialects.koordinator.config.layers import NodeWords
from j10ce.dialects.koordinator.native.node_layers import ALONE, UNHEEDED, WORDS, KnownNode
from j10ce.dialects.koordinator.native.strategies import Generated, generated
from j10ce.errors import Conflict, Finding, Invalid, NotFound
from j10ce.kube.client import KubeClient
from j10ce.kube.events import Subject
from j10ce.manager.documents.view import View
from j10ce.manager.kube.koordinator.follow import Following
from j10ce.manager.kube.koordinator.reconcile import GONE, StrategyChanges, changes, deleted
from j10ce.model.kinds import NodeStrategy
from j10ce.model.kube.native import Node
from j10ce.model.stored import Happening
from j10ce.store.store import ABSENT, Store

log = structlog.get_logger()
LOOK_S: Final = 5.0  # between looks at nodes, and at objects that somebody else may have changed
MOST_EVENTS: Final = 8  # of one reading
OWN_WORDS: Final[frozenset[str]] = frozenset().union(*WORDS.values(), ALONE, UNHEEDED)
Tell = Callable[[Subject, Happening], None]


class ConfigMapName(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ConfigMapText(NamedTuple):
    """A ConfigMap as it was read: None, while there is none."""

    uid: str = ""
    data: Mapping[str, str] | None = None


def following(client: KubeClient, where: ConfigMapName) -> Following:
    """One object alone: the right to read others is not needed."""
    path = f"/api/v1/namespaces/{where.namespace}/configmaps"
    return Following(client, path, {"fieldSelector": f"metadata.name={where.name}"})


class StrategyKeeper:
    def __init__(
        self,
        store: Store,
        view: View,
        nodes: Callable[[], Iterable[Node]],
        config_map: Following,
        where: ConfigMapName,
        tell: Tell,
    ) -> None:
        self._store, self._view, self._nodes, self._tell = store, view, nodes, tell
        self._config_map, self._where = config_map, where
        self._seen: tuple[ConfigMapText, tuple[KnownNode, ...]] | None = None
        self._made = Generated({})
        self._uid = ""  # of the ConfigMap that was there last

    async def run(self) -> None:
        """For ever."""
        await self._view.ready()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._config_map.run())
            group.create_task(self._keep())

    async def _keep(self) -> None:
        await self._config_map.synced.wait()
        while True:
            epoch = self._config_map.changed.epoch
            await self.look()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._config_map.changed.moved(epoch)
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Write what differs; say what is new."""
        reading = read(self._config_map.held.get(self._where.name))
        speaking = tuple(known for known in map(_known, self._nodes()) if _speaks(known))
        if (reading, speaking) != self._seen:
            # Beside the loop: a thousand nodes that speak for themselves take a fifth of a second.
            make = partial(deleted, speaking) if reading.data is None else partial(generated, reading.data, speaking)
            self._made = await asyncio.to_thread(make)
            before, self._seen = self._seen, (reading, speaking)
            self._say(before[0] if before else None, reading)
        await self._write(changes(self._view.all(NodeStrategy), self._made))

    def _say(self, before: ConfigMapText | None, now: ConfigMapText) -> None:
        self._uid = now.uid or self._uid
        if now.data is None:
            if before is None or before.data is not None:
                log.warning("koordinator.config", config_map=str(self._where), problem="there is none")
            if before is not None and before.data is not None:
                self._event(Happening("Warning", "ConfigMapDeleted", GONE))
            for finding in self._made.findings[len(SHAPES) :]:  # those of nodes: each key has one that it is gone
                log.warning("koordinator.node", error=str(finding))
            return
        made = self._made
        for finding in sorted(made.findings, key=_is_of_a_node)[:MOST_EVENTS]:
            self._event(Happening("Warning", "Refused", str(finding)))
        if made.notes:
            shown = "; ".join(map(str, made.notes[:MOST_EVENTS]))
            self._event(Happening("Warning", "NotHeeded", f"{len(made.notes)} fields have no equivalent: {shown}"))
        if not made.findings:
            self._event(Happening("Normal", "Accepted", f"{len(made.all())} NodeStrategies say what it says"))
        log.info("koordinator.config", findings=len(made.findings), notes=len(made.notes), objects=len(made.all()))

    def _event(self, happening: Happening) -> None:
        self._tell(Subject("v1", "ConfigMap", self._where.namespace, self._where.name, self._uid), happening)

    async def _write(self, todo: StrategyChanges) -> None:
        for name in todo.taken:
            log.warning("koordinator.taken", strategy=name, problem="an object of that name is not the dialect's")
        for strategy in todo.create:
            await self._one(strategy, "create", self._store.put(strategy, expect=ABSENT))
        for strategy in todo.update:
            expect = strategy.metadata.resource_version
            await self._one(strategy, "update", self._store.put(strategy, expect=expect))
        for strategy in todo.delete:
            meta = strategy.metadata
            gone = self._store.delete("NodeStrategy", "", meta.name, expect=meta.resource_version)
            await self._one(strategy, "delete", gone)

    async def _one(self, strategy: NodeStrategy, verb: str, written: Any) -> None:
        """One that is refused, or changed meanwhile, does not keep the others from being written."""
        try:
            await written
        except (Conflict, NotFound):
            return  # the next look sees it as it is
        except Invalid as e:
            log.error("koordinator.refused", strategy=strategy.metadata.name, error=str(e))
            self._event(Happening("Warning", "StrategyRefused", f"{strategy.metadata.name}: {e}"))
            return
        log.info("koordinator.write", strategy=strategy.metadata.name, verb=verb)


def read(raw: Any) -> ConfigMapText:
    """Texts alone: `binaryData` has no key of theirs."""
    if raw is None:
        return ConfigMapText()
    data = {key: text for key, text in (raw.get("data") or {}).items() if isinstance(text, str)}
    return ConfigMapText(str(raw["metadata"].get("uid", "")), data)


def _is_of_a_node(finding: Finding) -> bool:
    """Nodes write about themselves: what they get wrong comes after what is wrong with the ConfigMap."""
    return finding.path.startswith("node ")


def _known(node: Node) -> KnownNode:
    """With those annotations alone that count: others come and go."""
    said = {key: text for key, text in node.metadata.annotations.items() if key in OWN_WORDS}
    return KnownNode(node.metadata.name, NodeWords(node.metadata.labels, said))


def _speaks(node: KnownNode) -> bool:
    return any(word in node.words.labels or word in node.words.annotations for word in OWN_WORDS)
