"""Whether this agent is replaced or removed for good: its DaemonSet tells.

Settings outlive an agent that is replaced. One that is removed gives everything back first: as soon as it sees its
DaemonSet go, and, should it have missed that, when it is told to stop. The rights to look may be gone by then. They go
with an uninstallation and not with an update, so an API server that does not know us any more means the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec
import structlog
from msgspec import field

from j10ce.agent.kube_api import KubeApi, Watched
from j10ce.errors import Denied, NotFound, QosError
from j10ce.model.native import Native, NativeObject, Node, decode_native
from j10ce.store.kube_resource import Resource
from j10ce.store.mirror import mirror
from j10ce.store.revise import Key

log = structlog.get_logger()
KIND: Final = "DaemonSet"
ANSWER_S: Final = 5.0
Fate = Literal["wanted", "removed", "unknown"]


class PodSpec(Native, frozen=True, kw_only=True):
    node_selector: dict[str, str] = field(default_factory=dict)


class Template(Native, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Native, frozen=True, kw_only=True):
    template: Template = Template()


class DaemonSet(NativeObject, frozen=True, kw_only=True):
    spec: DaemonSetSpec = DaemonSetSpec()


def watched(namespace: str, name: str) -> Watched:
    resource = Resource(
        KIND, "/apis/apps/v1", "daemonsets", lambda text: decode_native(text, DaemonSet), namespaced=True
    )
    return Watched(resource, f"metadata.name={name}", namespace)


class Life:
    """`decide` is told on each change whether the agent is wanted."""

    def __init__(self, api: KubeApi, namespace: str, name: str, node: str) -> None:
        self._api, self._node = api, node
        self._path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"
        self._key = Key(KIND, namespace, name)
        self._mirror = mirror(api, KIND)

    async def run(self, decide: Callable[[bool], Awaitable[None]]) -> None:
        before = True
        async for _ in self._mirror.changes():
            held: Mapping[Key, object] = self._mirror.held
            wanted = _stands(held.get(self._key))
            if wanted != before:
                log.info("agent.judge", wanted=wanted, daemonset=str(self._key))
                await decide(wanted)
            before = wanted

    async def fate(self) -> Fate:
        """By asking once. Unknown: no answer."""
        try:
            found = decode_native(await self._api.ask("GET", self._path, within_s=ANSWER_S), DaemonSet)
            if not _stands(found) or not await self._runs_here(found.spec.template.spec.node_selector):
                return "removed"
        except (NotFound, Denied) as e:
            log.info("agent.unknown_to_api_server", error=str(e))
            return "removed"
        except (QosError, OSError, msgspec.MsgspecError) as e:
            log.warning("agent.fate_unknown", error=str(e), means="settings stay")
            return "unknown"
        return "wanted"

    async def _runs_here(self, selector: Mapping[str, str]) -> bool:
        if not selector:
            return True
        text = await self._api.ask("GET", f"/api/v1/nodes/{self._node}", within_s=ANSWER_S)
        labels = decode_native(text, Node).metadata.labels
        return all(labels.get(key) == value for key, value in selector.items())


def _stands(found: object) -> bool:
    return isinstance(found, DaemonSet) and found.metadata.deletion_timestamp is None
