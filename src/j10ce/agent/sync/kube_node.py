"""An agent's parts on Kubernetes, put together: one way to the API server, and who stands in for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from j10ce.adapters.kubernetes import KubernetesAdapter
from j10ce.adapters.kubernetes_cgroups import PodTree
from j10ce.agent.cache import Cache, Pods
from j10ce.agent.config import KUBE, AgentConfig
from j10ce.agent.sync.daemonset import KIND as DAEMONSET
from j10ce.agent.sync.daemonset import Life, watched
from j10ce.agent.sync.kube_sync import KubeSync
from j10ce.agent.sync.reporter import ReportingNode
from j10ce.errors import QosError, Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.http.client import Client
from j10ce.kube.access import KubeAccess, read_access
from j10ce.kube.light import KubeApi, Watched
from j10ce.kube.resource import Resource, resources
from j10ce.model.kube.native import Pool, decode_native, read_amount, slim
from j10ce.model.kube.pod import Pod
from j10ce.model.quantity import Quantity
from j10ce.policy.document.document import NodeDocument
from j10ce.store.mirror import Mirror

log = structlog.get_logger()
REMEMBER_S: Final = 10.0
OUR_DAEMONSET: Final = "j10ce-qos-agent"


class KubeNode:
    """Built inside a running event loop. Raises Invalid, Denied and Unsupported for a server that cannot be used."""

    def __init__(self, settings: AgentConfig, node: str, cache: Cache, hierarchies: Hierarchies) -> None:
        access = read_access(settings.server, os.environ)
        if access.plugin:
            raise Unsupported(f"the credential plugin of {access.who}", needs="a token: nobody is there to be asked")
        daemonset = _daemonset(settings, access)
        self.api = KubeApi(access, _watched(node, daemonset))
        self.life = Life(self.api, *daemonset, node) if daemonset else None
        tree = PodTree(hierarchies)
        self.adapter = KubernetesAdapter(Mirror(self.api, "Pod"), Mirror(self.api, "Namespace"), tree, self)
        self._cache, self._node = cache, node
        self._kubelet = _kubelet(settings, self.api)

    def sync(
        self, node: ReportingNode, known: NodeDocument, lend: Callable[[Mapping[str, Quantity]], None]
    ) -> KubeSync:
        return KubeSync(self.api, self._node, node, known, lend)

    async def run(self, decide: Callable[[bool], Awaitable[None]]) -> None:
        """Beside the sync."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.adapter.run())
            tasks.create_task(self._remember())
            if self.life:
                tasks.create_task(self.life.run(decide))

    async def _remember(self) -> None:
        before: frozenset[str] = frozenset()
        while True:
            await asyncio.sleep(REMEMBER_S)
            pods = self.adapter.pods()
            now = frozenset(f"{pod.metadata.uid} {pod.metadata.resource_version}" for pod in pods)
            if now != before and not self.lost:
                self._cache.keep_pods(pods)
                before = now

    # ------------------------------------------------------------------ as the adapter sees the cluster

    @property
    def lost(self) -> bool:
        return bool(self.api.troubles["Pod"])

    async def stand_in(self) -> Sequence[Pod]:
        """The kubelet, else what was known before a restart."""
        if self._kubelet is None:
            return self._cache.pods()
        try:
            head, text = await self._kubelet.ask("GET", "/pods")
            if head.status_code == 200:
                return msgspec.json.decode(text, type=Pods, dec_hook=read_amount).items
            log.warning("kubelet.refuses", kubelet=self._kubelet.peer.url, status=head.status_code)
        except (QosError, OSError, msgspec.MsgspecError) as e:
            log.warning("kubelet.fail", kubelet=self._kubelet.peer.url, error=str(e))
        finally:
            await self._kubelet.close()
        return self._cache.pods()


def _watched(node: str, daemonset: tuple[str, str] | None) -> dict[str, Watched]:
    pool, ours = Pool(), resources()
    # With what says which containers run: slim() leaves that in.
    pods = Resource("Pod", "/api/v1", "pods", lambda text: slim(decode_native(text, Pod), pool), namespaced=True)
    wide = ("QoSProfile", "MinimalReservationPolicy", "NodeStrategy", "Hold", "PolicyRevision", "Namespace")
    kinds = {kind: Watched(ours[kind]) for kind in wide}
    kinds |= {kind: Watched(ours[kind], f"metadata.name={node}") for kind in ("NodeQoS", "Node")}
    kinds["Pod"] = Watched(pods, f"spec.nodeName={node}")
    if daemonset:
        kinds[DAEMONSET] = watched(*daemonset)
    return kinds


def _daemonset(settings: AgentConfig, access: KubeAccess) -> tuple[str, str] | None:
    """In a pod there is always one; an agent that a host runs by itself has none."""
    if settings.daemonset:
        namespace, _, name = settings.daemonset.partition("/")
        return namespace, name
    return (access.namespace, OUR_DAEMONSET) if settings.server == KUBE else None


def _kubelet(settings: AgentConfig, api: KubeApi) -> Client | None:
    ip = os.environ.get("NODE_IP", "")
    address = settings.kubelet or (f"https://{f'[{ip}]' if ':' in ip else ip}:10250" if ip else "")
    if not address:
        return None
    peer = api.peer._replace(url=address, server_name="")
    return Client(peer if address.startswith("https:") else peer._replace(token_file="", token=""))
