"""Where the Scheduler Extender is: a Service without a selector leads to whoever leads.

Followers would answer 503, and a scheduler that may ignore its extender would then ignore reservations.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Any, Final, Protocol

import structlog

from j10ce.errors import Finding, Invalid, NotFound

log = structlog.get_logger()
SERVICE: Final = "j10ce-extender"
AGAIN_S: Final = 30.0  # someone may have changed it


class Api(Protocol):
    """As much of an API server's client as is needed."""

    async def create(self, path: str, body: object) -> bytes: ...

    async def patch(self, path: str, body: object, how: Any) -> bytes: ...


async def keep_address(api: Api, namespace: str, address: str) -> None:
    """For ever; `address` is ip:port. The next leader writes over it."""
    collection, body = f"/api/v1/namespaces/{namespace}/endpoints", endpoints(address)
    while True:
        try:
            await api.patch(f"{collection}/{SERVICE}", body, "merge")
        except NotFound:
            await api.create(collection, body)
            log.info("extender.announce", address=address)
        await asyncio.sleep(AGAIN_S)


def endpoints(address: str) -> dict[str, Any]:
    """As they stand behind the Service; raises Invalid.

    Not part of deploy/: whoever removes a Service removes its endpoints, too, and a second removal would fail.
    """
    host, _, port = address.rpartition(":")
    try:
        ip = str(ip_address(host.removeprefix("[").removesuffix("]")))
        number = int(port)
    except ValueError:
        hint = "write 10.1.2.3:9443 or [fd00::1]:9443"
        raise Invalid([Finding("--advertise", address, "not address:port", hint)], "argument") from None
    ports = [{"name": "https", "port": number, "protocol": "TCP"}]
    named = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": SERVICE}}
    return named | {"subsets": [{"addresses": [{"ip": ip}], "ports": ports}]}
