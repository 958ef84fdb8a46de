"""Pods at the door: judged by the profiles and namespaces in memory, or by the API server's where those are newer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from j10ce.errors import Invalid, NotFound, Unreachable
from j10ce.model.kinds import NAMESPACE_NAME_LABEL, PROFILE_LABEL, Object, QoSProfile
from j10ce.model.workload import Workload
from j10ce.policy.pods import ours, pod_findings, profile_for
from j10ce.policy.profiles import canonical
from j10ce.policy.select import Labels


class Objects(Protocol):
    """As much of a store as is asked for what is newer than our memory."""

    async def get(self, kind: str, namespace: str, name: str) -> Object: ...


class PodRules:
    """`namespaces`: the labels of one that is known, else None. `profiles`: None while they are being read."""

    def __init__(
        self,
        objects: Objects,
        namespaces: Callable[[str], Labels | None],
        profiles: Callable[[], list[QoSProfile] | None],
    ) -> None:
        self._objects, self._namespaces, self._profiles = objects, namespaces, profiles

    async def check(self, namespace: str, pod: Any, old: Any) -> None:
        """Raises Invalid with all findings. Labels that a pod has already are not looked at again."""
        if old and ours(_labels(pod)) == ours(_labels(old)):
            return
        known = await self._workload(namespace, pod)
        if findings := pod_findings(known, await self._known(known)):
            raise Invalid(findings, f"Pod {namespace}/{known.name}")

    async def profile(self, namespace: str, pod: Any) -> str:
        """What to label it with; empty: nothing."""
        known = await self._workload(namespace, pod)
        return profile_for(known, await self._known(known))

    async def _workload(self, namespace: str, pod: Any) -> Workload:
        meta: Mapping[str, Any] = pod.get("metadata", {})
        has = self._namespaces(namespace)
        if has is None:
            has = (await self._objects.get("Namespace", "", namespace)).metadata.labels
        name = meta.get("name") or meta.get("generateName", "")
        return Workload(namespace, name, _labels(pod), {NAMESPACE_NAME_LABEL: namespace, **has})

    async def _known(self, pod: Workload) -> list[QoSProfile]:
        profiles = self._profiles()
        if profiles is None:
            raise Unreachable("profiles are still being read")
        for asked in (pod.labels.get(PROFILE_LABEL), pod.namespace_labels.get(PROFILE_LABEL)):
            name = canonical(asked or "")
            if name and not any(p.metadata.name == name for p in profiles):
                profiles = [*profiles, *await self._newer(name)]
        return profiles

    async def _newer(self, name: str) -> list[QoSProfile]:
        """One that was made a moment ago."""
        try:
            found = await self._objects.get("QoSProfile", "", name)
        except NotFound:
            return []
        return [found] if isinstance(found, QoSProfile) else []


def _labels(pod: Any) -> dict[str, str]:
    return pod.get("metadata", {}).get("labels") or {}
