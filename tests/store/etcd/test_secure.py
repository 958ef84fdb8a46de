"""An etcd that wants TLS, a client certificate, a user and a password."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from j10ce.errors import Compacted, Denied, Invalid, StoreError, Unavailable
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.etcd.upkeep import compact
from j10ce.store.etcd.wire import RANGE
from j10ce.store.schemes import elector_for, open_store
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, names, take
from tests.etcd.certificates import Authority, Files
from tests.etcd.cluster import Cluster, running

USER, PASSWORD = "manager", "correct horse"


class Secure(NamedTuple):
    cluster: Cluster
    ca: Path
    client: Files
    named: Files  # after the user
    password_file: Path

    def url(self, prefix: str = "j10ce", **changes: str | None) -> str:
        """With everything that is needed, but for what `changes` says."""
        options: dict[str, str | None] = {
            "ca": str(self.ca),
            "cert": str(self.client.cert),
            "key": str(self.client.key),
            "user": USER,
            "password-file": str(self.password_file),
        }
        options |= {key.replace("_", "-"): value for key, value in changes.items()}
        query = "&".join(f"{key}={value}" for key, value in options.items() if value)
        return f"{self.cluster.url}/{prefix}?{query}"


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secure")
    authority = Authority(folder)
    server, client, named = authority.sign("server"), authority.sign("client"), authority.sign("named", common=USER)
    context = ssl.create_default_context(cafile=authority.file)
    context.load_cert_chain(*client)
    files = {"cert-file": server.cert, "key-file": server.key, "trusted-ca-file": authority.file}
    flags = [*(f"--{flag}={file}" for flag, file in files.items()), "--client-cert-auth", "--auth-token=simple"]
    (folder / "password").write_text(f"{PASSWORD}\n")
    with running(folder, count=1, flags=flags, tls=context) as cluster:
        add_users(cluster)
        yield Secure(cluster, authority.file, client, named, folder / "password")


def add_users(cluster: Cluster) -> None:
    for name, password in (("root", "root"), (USER, PASSWORD)):
        assert cluster.ask(0, "/v3/auth/user/add", {"name": name, "password": password})
    start, end = (base64.b64encode(text).decode() for text in (b"/j10ce/", b"/j10ce0"))
    permission = {"permType": "READWRITE", "key": start, "range_end": end}
    for role, user in (("root", "root"), ("objects", USER)):
        assert cluster.ask(0, "/v3/auth/role/add", {"name": role})
        assert cluster.ask(0, "/v3/auth/user/grant", {"user": user, "role": role})
    assert cluster.ask(0, "/v3/auth/role/grant", {"name": "objects", "perm": permission})
    assert cluster.ask(0, "/v3/auth/enable")


@pytest.fixture
async def store(secure: Secure) -> AsyncIterator[Store]:
    store = open_store(secure.url(), lambda: WALL)
    yield store
    await store.close()


async def test_everything_works_through_tls_as_a_user(store: Store) -> None:
    since = (await store.list(KIND)).revision
    made = await store.put(reservation("db"))
    gone = await store.delete(KIND, "default", "db")
    assert [event.object for event in await take(store, KIND, since, 2)] == [made, gone]


async def test_a_user_may_lead_and_compact(store: Store) -> None:
    assert isinstance(store, EtcdStore)
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    await elector_for(store, "me").lead(work)
    assert done.is_set()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await compact(store._gateway, store._layout, every_s=0.01)
    with pytest.raises(Compacted):
        await store._gateway.ask(RANGE, pb.RangeRequest(key=store._layout.mark, revision=1))


async def test_an_expired_token_is_renewed(store: Store) -> None:
    await store.put(reservation("first"))
    assert isinstance(store, EtcdStore)
    store._gateway._token = "rubbish.1"
    await store.put(reservation("second"))
    store._gateway._token = "rubbish.1"
    assert names(await store.list(KIND)) == ["default/first", "default/second"]
    for name in ("first", "second"):
        await store.delete(KIND, "default", name)


async def test_a_certificate_may_name_the_user(secure: Secure) -> None:
    cert, key = map(str, secure.named)
    store = open_store(secure.url(cert=cert, key=key, user=None, password_file=None), lambda: WALL)
    made = await store.put(reservation("db"))
    assert await store.delete(KIND, "default", "db", expect=made.metadata.resource_version)
    await store.close()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        pytest.param({"ca": None}, Unavailable, "CERTIFICATE_VERIFY_FAILED", id="an unknown authority"),
        pytest.param({"cert": None, "key": None}, Unavailable, "does not answer", id="no client certificate"),
        pytest.param(
            {"user": None, "password_file": None}, StoreError, "grant the user", id="no user but the certificate's"
        ),
        pytest.param({"user": "stranger"}, StoreError, "authentication failed", id="an unknown user"),
        pytest.param({"prefix": "elsewhere"}, StoreError, "grant the user readwrite", id="another prefix"),
    ],
)
async def test_a_refusal_is_reported(
    secure: Secure, changes: dict[str, str], error: type[Exception], words: str
) -> None:
    store = EtcdStore(read_address(secure.url(**changes)), lambda: WALL, patience_s=1.0)
    with pytest.raises(error, match=words):
        await store.list(KIND)
    with pytest.raises(StoreError, match=words):
        await store.put(reservation("db"))
    await store.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("etcd://", "not host:port", id="no host"),
        pytest.param("etcd://a:1,b", "not host:port", id="no port"),
        pytest.param("etcd://a:1?colour=red", "unknown option", id="an unknown option"),
        pytest.param("etcd://a:1?ca=/x", "write etcds://", id="TLS options without TLS"),
        pytest.param("etcds://a:1?cert=/x", "cert and key belong together", id="half a client certificate"),
        pytest.param("etcds://a:1?user=x", "user and password-file belong together", id="a user without password"),
        pytest.param("zookeeper://a:1", "unknown store", id="an unknown scheme"),
    ],
)
def test_a_wrong_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        open_store(url, lambda: WALL)


@pytest.mark.parametrize("option", ["ca=/nowhere", "cert=/nowhere&key=/nowhere", "user=x&password-file=/nowhere"])
def test_a_file_that_cannot_be_read_is_named(option: str) -> None:
    with pytest.raises(Denied, match="/nowhere"):
        open_store(f"etcds://a:1?{option}", lambda: WALL)


def test_an_address_is_read_wholly() -> None:
    address = read_address("etcd://a:1,[::1]:2/fleet/one/")
    assert address.endpoints == ("a:1", "[::1]:2")
    assert address.prefix == "/fleet/one"
    assert read_address("etcd://a:1").prefix == "/j10ce"
