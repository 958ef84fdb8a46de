"""Leadership by a Lease of Kubernetes: whoever holds it leads, for as long as it is seen to be renewed.

Clocks of different machines are never compared: a claim has expired when it was not seen to change for its duration.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.errors import Conflict, NotFound, Unavailable, Unsure
from j10ce.kube.client import KubeClient
from j10ce.model.kube.native import Lease, LeaseSpec, decode_native
from j10ce.store.elector import ClaimElector, Claims, Lapsed

TTL_S: Final = 15
RELEASE_S: Final = 2.0
NAME: Final = "j10ce-controller-manager"
Wall = Callable[[], float]


class KubeClaim(NamedTuple):
    lease: Lease  # as last written
    asked_at: float


def kube_elector(
    client: KubeClient, identity: str, wall: Wall, *, ttl_s: int = TTL_S, name: str = NAME
) -> ClaimElector[KubeClaim]:
    """`name`: of the Lease. Those who ask for the same one elect one leader."""
    return ClaimElector(KubeClaims(client, identity, wall, ttl_s, name), identity, ttl_s=ttl_s)


class KubeClaims:
    def __init__(self, client: KubeClient, identity: str, wall: Wall, ttl_s: int, name: str = NAME) -> None:
        self.holder = ""
        self._client, self._wall, self._ttl_s = client, wall, ttl_s
        self._identity = f"{identity}_{uuid.uuid4().hex[:8]}"  # its own, also after a restart under the same name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{client.namespace}/leases"
        self._name, self._path = name, f"{self._collection}/{name}"
        self._seen = LeaseSpec()
        self._seen_at = 0.0  # by the event loop's clock

    async def claimed(self) -> KubeClaim:
        while True:
            lease = await self._find()
            try:
                if lease is None:
                    return await self._write(None, self._taken(LeaseSpec()))
                left_s = self._left_s(lease.spec)
                if left_s <= 0:
                    return await self._write(lease, self._taken(lease.spec))
            except Conflict:  # someone was faster
                continue
            self.holder = (lease.spec.holder_identity or "").rpartition("_")[0]
            await self._changed(lease, left_s)

    async def renewed(self, claim: KubeClaim, within_s: float) -> KubeClaim:
        """A conflict may be with our own last renewal, when it was not answered, or with someone who set a label."""
        try:
            return await self._write(claim.lease, self._spelled(claim.lease.spec))
        except (Conflict, NotFound, Unsure):
            lease = await self._find()
            if lease is None or not self._is_ours(lease, claim):
                raise Lapsed("the claim is someone else's, or was deleted") from None
            return await self._write(lease, self._spelled(lease.spec))

    async def release(self, claim: KubeClaim) -> None:
        """Its duration is cut as well, for those who go by that alone."""
        lease: Lease | None = claim.lease
        with suppress(TimeoutError, NotFound):
            async with asyncio.timeout(RELEASE_S):
                while lease and self._is_ours(lease, claim):
                    given_up = self._spelled(lease.spec) | {"holderIdentity": "", "leaseDurationSeconds": 1}
                    try:
                        await self._write(lease, given_up)
                        return
                    except Conflict:  # a renewal that was on its way when the work ended
                        lease = await self._find()

    def _left_s(self, spec: LeaseSpec) -> float:
        """How long the claim may stand unless it changes; not above 0: it may be taken."""
        now = asyncio.get_running_loop().time()
        if spec != self._seen:
            self._seen, self._seen_at = spec, now
        if spec.holder_identity in (None, "", self._identity):  # ours, when the answer to an earlier try was lost
            return 0.0
        return self._seen_at + (spec.lease_duration_seconds or self._ttl_s) - now

    async def _changed(self, lease: Lease, within_s: float) -> None:
        """Returns once the Lease has changed, or might have, or time is up."""
        query, since = {"fieldSelector": f"metadata.name={self._name}"}, lease.metadata.resource_version
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(within_s),
                aclosing(self._client.watch(self._collection, since, query)) as lines,
            ):
                async for line in lines:
                    if line.type != "BOOKMARK":
                        return

    async def _find(self) -> Lease | None:
        try:
            return _decoded(await self._client.get(self._path))
        except NotFound:
            return None

    async def _write(self, lease: Lease | None, spec: dict[str, Any]) -> KubeClaim:
        """Raises Conflict when it is not what it was."""
        asked_at = asyncio.get_running_loop().time()
        if lease is None:
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name},
                "spec": spec,
            }
            return KubeClaim(_decoded(await self._client.create(self._collection, body)), asked_at)
        # Not a PUT: that would create a Lease that somebody has deleted, to have another leader.
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return KubeClaim(_decoded(await self._client.patch(self._path, body, "merge", repeatable=True)), asked_at)

    def _taken(self, spec: LeaseSpec) -> dict[str, Any]:
        own = {"holderIdentity": self._identity, "leaseDurationSeconds": self._ttl_s, "acquireTime": self._now()}
        return self._spelled(spec) | own | {"leaseTransitions": (spec.lease_transitions or 0) + 1}

    def _spelled(self, spec: LeaseSpec) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(spec)
        acquired = {"acquireTime": _micro(spec.acquire_time)} if spec.acquire_time else {}
        return fields | acquired | {"renewTime": self._now()}

    def _now(self) -> str:
        return _micro(datetime.fromtimestamp(self._wall(), UTC))

    def _is_ours(self, lease: Lease, claim: KubeClaim) -> bool:
        """Not one that was lost in between and won back."""
        mine = claim.lease.spec
        return lease.spec.holder_identity == self._identity and lease.spec.lease_transitions == mine.lease_transitions


def _micro(moment: datetime) -> str:
    """An API server insists on microseconds, also where there are none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _decoded(text: bytes) -> Lease:
    try:
        return decode_native(text, Lease)
    except msgspec.MsgspecError as e:
        raise Unavailable(f"the API server's Lease is not understood: {e}") from None


_: type[Claims[KubeClaim]] = KubeClaims
