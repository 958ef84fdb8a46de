"""Several managers, one Secret: they agree, they serve the same, and the API server learns whom to trust."""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from j10ce.errors import Conflict, Denied, NotFound
from j10ce.manager.access.signing import CertificateWish, issued, new_authority, text
from j10ce.manager.access.tls import certified
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.documents.fleet_metrics import certificates
from j10ce.manager.kube.certificates import Lives
from j10ce.manager.kube.webhook_certs import CONFIGURATIONS, Certificates, GivenAuthority
from j10ce.manager.telemetry.metrics import Metrics
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


def keeper(api: Api, clock: FakeClock, client_ca: Path | None = None) -> Certificates:
    return Certificates(api, "j10ce-system", HOSTS, lambda: clock.wall, client_ca=client_ca, lives=LIVES)


def trusts(bundle: str, kept: Certificates) -> bool:
    """Whether a client that trusts `bundle` gets through to what is served."""
    try:
        met(bundle, kept)
    except ssl.SSLCertVerificationError:
        return False
    return True


def met(bundle: str, kept: Certificates, shown: Path | None = None) -> Ticket | None:
    """As whom the server knows a client that trusts `bundle` and shows a certificate; raises where one does not trust
    the other."""
    client = ssl.create_default_context(cadata=bundle)
    client.verify_flags |= ssl.VERIFY_X509_STRICT | NO_CHECK_TIME
    kept.context.verify_flags |= NO_CHECK_TIME
    if shown:
        client.load_cert_chain(shown)
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(coming, going, server_hostname="localhost")
    other = kept.context.wrap_bio(going, coming, server_side=True)
    for _ in range(4):
        for side in (one, other):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert one.getpeercert() is not None
    return certified(other.getpeercert())


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
    assert {name: round(ends - clock.wall) for name, ends in manager.ends.items()} == {
        "authority": 9_000,
        "serving": 900,
        "client": 9_000,
    }


async def test_the_metrics_tell_when_each_certificate_ends() -> None:
    api, clock, metrics = Api(), FakeClock(), Metrics()
    kept = keeper(api, clock)
    metrics.also(lambda: certificates(kept.ends))
    await kept.look()
    metrics_text = bytes(metrics.render().body).decode()
    fields = dict(re.findall(r'certificate_expires_seconds{certificate="(\w+)"} (\S+)', metrics_text))
    left = {name: float(ends) - clock.wall for name, ends in fields.items()}
    assert left == {"authority": LIVES.authority_s, "serving": LIVES.serving_s, "client": LIVES.authority_s}


async def test_a_broken_secret_is_made_anew() -> None:
    api, clock = Api(), FakeClock()
    api.objects[SECRET]["data"] = {"ca.crt": "eA==", "ca.key": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}
    manager = keeper(api, clock)
    await manager.look()
    assert trusts(api.bundles().pop(), manager)


async def test_without_a_secret_it_says_what_to_do() -> None:
    with pytest.raises(Denied, match="apply deploy/ again"):
        await keeper(Api(secret=False), FakeClock()).look()


async def test_a_scheduler_is_known_by_the_certificate_in_the_secret(tmp_path: Path) -> None:
    api, clock = Api(), FakeClock()
    manager = keeper(api, clock)
    await manager.look()
    data = {name: b64decode(text).decode() for name, text in api.objects[SECRET]["data"].items()}
    shown = tmp_path / "client.pem"
    shown.write_text(data["client.crt"] + data["client.key"])
    known = met(data["bundle.crt"], manager, shown)
    assert known is not None
    assert known.caller.name == "j10ce-scheduler"
    assert met(data["bundle.crt"], manager) is None, "who shows nothing is nobody, and API servers show nothing"
    shown.write_text(data["tls.crt"] + data["tls.key"])
    with pytest.raises(ssl.SSLError):
        met(data["bundle.crt"], manager, shown)


async def test_a_scheduler_that_reads_the_secret_now_and_then_is_always_let_in(tmp_path: Path) -> None:
    api, clock = Api(), FakeClock()
    manager, shown, seen = keeper(api, clock), tmp_path / "client.pem", set()
    await manager.look()
    for n in range(320):
        if n % 2 == 0:
            data = {name: b64decode(text).decode() for name, text in api.objects[SECRET]["data"].items()}
            shown.write_text(data["client.crt"] + data["client.key"])
            seen.add(data["client.crt"])
        clock.advance(20.0)
        await manager.look()
        assert met(data["bundle.crt"], manager, shown) is not None
    assert len(seen) >= 2


async def test_a_client_ca_of_the_administrator_is_heeded_beside_our_own(tmp_path: Path) -> None:
    api, clock = Api(), FakeClock()
    authority = new_authority("theirs", 9_000.0, clock.wall)
    made = issued(CertificateWish("kube-scheduler", 900.0, role="viewer"), authority, clock.wall)
    ca, shown = tmp_path / "ca.crt", tmp_path / "client.pem"
    ca.write_text(text(authority.certificate))
    shown.write_text(text(made.certificate) + made.private)
    manager = keeper(api, clock, ca)
    await manager.look()
    (bundle,) = api.bundles()
    known = met(bundle, manager, shown)
    assert known is not None
    assert known.caller.name == "kube-scheduler"
    with pytest.raises(Denied, match="client CA"):
        keeper(api, clock, tmp_path / "absent.crt")


async def test_a_given_authority_is_given_to_the_api_server_and_followed(tmp_path: Path) -> None:
    api, clock, file = Api(), FakeClock(), tmp_path / "ca.crt"
    given = GivenAuthority(api, file)
    with pytest.raises(Denied, match="webhook CA"):
        await given.look()
    for name in ("one", "two"):
        file.write_text(text(new_authority(name, 9_000.0, clock.wall).certificate))
        await given.look()
        assert api.bundles() == {file.read_text()}
    file.write_text("half a fi")
    with pytest.raises(Denied, match="webhook CA"):
        await given.look()


async def test_whoever_removed_the_webhooks_is_left_in_peace() -> None:
    api, clock = Api(), FakeClock()
    for path in CONFIGURATIONS:
        del api.objects[path]
    await keeper(api, clock).look()
    assert api.writes == 1
