"""Where the Scheduler Extender is: a Service without a selector leads to whoever leads.

Followers would answer 503, and a scheduler that may ignore its extender would then ignore reservations.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Any, Final, Protocol

import msgspec
import structlog

from j10ce.errors import Finding, Invalid

log = structlog.get_logger()
SERVICE: Final = "j10ce-extender"
GROUP: Final = "/apis/discovery.k8s.io"
AGAIN_S: Final = 30.0  # someone may have changed it


class SliceApi(Protocol):
    """As much of an API server's client as is needed."""

    async def get(self, path: str) -> bytes: ...

    async def patch(self, path: str, body: object, how: Any, *, force: bool) -> bytes: ...


async def keep_address(api: SliceApi, namespace: str, address: str) -> None:
    """For ever; `address` is ip:port. The next leader writes over it."""
    served = msgspec.json.decode(await api.get(GROUP))["preferredVersion"]["groupVersion"]  # v1beta1 before 1.21
    path = f"/apis/{served}/namespaces/{namespace}/endpointslices/{SERVICE}"
    body = {"apiVersion": served, **slice_of(address)}
    log.info("extender.announce", address=address)
    while True:
        await api.patch(path, body, "apply", force=True)
        await asyncio.sleep(AGAIN_S)


def slice_of(address: str) -> dict[str, Any]:
    """As it stands behind the Service; raises Invalid. Not part of deploy/: the leader alone knows it."""
    host, _, port = address.rpartition(":")
    try:
        ip = ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port)
    except ValueError:
        hint = "write 10.1.2.3:9443 or [fd00::1]:9443"
        raise Invalid([Finding("--advertise", address, "not address:port", hint)], "argument") from None
    labels = {"kubernetes.io/service-name": SERVICE, "endpointslice.kubernetes.io/managed-by": "j10ce.io"}
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": SERVICE, "labels": labels},
        "addressType": f"IPv{ip.version}",
        "endpoints": [{"addresses": [str(ip)], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": number, "protocol": "TCP"}],
    }
