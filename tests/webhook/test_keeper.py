"""Several managers, one Secret: they agree, they serve the same, and the API server is told whom to trust."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from typing import Any

import msgspec
import pytest

from j10ce.errors import Conflict, Denied, NotFound
from j10ce.manager.certificate_keeper import CONFIGURATIONS, Certificates
from j10ce.manager.certificates import Lives
from j10ce.testing.clock import FakeClock

HOSTS = ("localhost", "127.0.0.1")
LIVES = Lives(authority_s=9_000.0, serving_s=900.0, overlap_s=60.0)
NO_CHECK_TIME = 0x200000  # OpenSSL's: the clock of these tests is not the machine's
SECRET = "/api/v1/namespaces/j10ce-system/secrets/j10ce-certificates"


class Api:
    """An API server with a Secret and two webhook configurations."""

    def __init__(self, *, secret: bool = True) -> None:
        self.objects: dict[str, Any] = {path: {"webhooks": [_hook("a"), _hook("b")]} for path in CONFIGURATIONS}
        if secret:
            self.objects[SECRET] = {"metadata": {"resourceVersion": "1"}, "type": "Opaque"}
        self.writes = 0

    async def get(self, path: str) -> bytes:
        await asyncio.sleep(0)
        if path not in self.objects:
            raise NotFound(path)
        return msgspec.json.encode(self.objects[path])

    async def replace(self, path: str, body: Any) -> bytes:
        await asyncio.sleep(0)
        has = self.objects[path]["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != has:
            raise Conflict("stale")
        self.writes += 1
        self.objects[path] = {**body, "metadata": {"resourceVersion": str(int(has) + 1)}}
        return b""

    async def patch(self, path: str, body: Any, how: Any) -> bytes:
        assert how == "json"
        for test, add in zip(body[::2], body[1::2], strict=True):
            index = int(add["path"].split("/")[2])
            assert self.objects[path]["webhooks"][index]["name"] == test["value"]
            self.objects[path]["webhooks"][index]["clientConfig"]["caBundle"] = add["value"]
        return b""

    def bundles(self) -> set[str]:
        hooks = [hook for path in CONFIGURATIONS for hook in self.objects[path]["webhooks"]]
        return {b64decode(hook["clientConfig"]["caBundle"]).decode() for hook in hooks}


def _hook(name: str) -> dict[str, Any]:
    return {"name": name, "clientConfig": {"service": {"name": "s"}}}


def keeper(api: Api, clock: FakeClock) -> Certificates:
    return Certificates(api, "j10ce-system", HOSTS, lambda: clock.wall, lives=LIVES)


def trusts(bundle: str, kept: Certificates) -> bool:
    """Whether a client that trusts `bundle` gets through to what is served."""
    client = ssl.create_default_context(cadata=bundle)
    client.verify_flags |= ssl.VERIFY_X509_STRICT | NO_CHECK_TIME
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(coming, going, server_hostname="localhost")
    other = kept.context.wrap_bio(going, coming, server_side=True)
    for _ in range(4):
        for side in (one, other):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return one.getpeercert() is not None


async def test_managers_that_start_together_share_one_certificate() -> None:
    api, clock = Api(), FakeClock()
    managers = [keeper(api, clock) for _ in range(4)]
    await asyncio.gather(*(manager.look() for manager in managers))
    assert api.writes == 1
    (bundle,) = api.bundles()
    assert all(trusts(bundle, manager) for manager in managers)


async def test_a_manager_that_looks_late_is_still_trusted_while_the_authority_changes() -> None:
    api, clock = Api(), FakeClock()
    early, late = keeper(api, clock), keeper(api, clock)
    await early.look()
    seen = set()
    for _ in range(320):
        clock.advance(20.0)
        for manager in (early, late):
            await manager.look()
            (bundle,) = api.bundles()
            seen.add(bundle)
            assert trusts(bundle, early)
            assert manager is early or trusts(bundle, late)
    assert len(seen) >= 3


async def test_nothing_is_written_while_nothing_is_due() -> None:
    api, clock = Api(), FakeClock()
    manager = keeper(api, clock)
    await manager.look()
    await manager.look()
    assert api.writes == 1


async def test_a_broken_secret_is_made_anew() -> None:
    api, clock = Api(), FakeClock()
    api.objects[SECRET]["data"] = {"ca.crt": "eA==", "ca.key": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}
    manager = keeper(api, clock)
    await manager.look()
    assert trusts(api.bundles().pop(), manager)


async def test_without_a_secret_it_says_what_to_do() -> None:
    with pytest.raises(Denied, match="apply deploy/ again"):
        await keeper(Api(secret=False), FakeClock()).look()


async def test_whoever_removed_the_webhooks_is_left_in_peace() -> None:
    api, clock = Api(), FakeClock()
    for path in CONFIGURATIONS:
        del api.objects[path]
    await keeper(api, clock).look()
    assert api.writes == 1
