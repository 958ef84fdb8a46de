"""Keeps the certificates of webhooks and schedulers: all managers share a Secret, API servers get the bundle.

Every manager may renew them: of several that try at once, one writes, and the others read what it wrote.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog

from j10ce.errors import Conflict, Denied, NotFound, QosError
from j10ce.manager.access.tls import bare_context
from j10ce.manager.kube.certificates import LIVES, Lives, Material, ends, read, renewed, secret_data

log = structlog.get_logger()
SECRET: Final = "j10ce-certificates"  # noqa: S105  a name
CONFIGURATIONS: Final = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/j10ce-qos"
    for kind in ("validating", "mutating")
)
LOOK_S: Final = 10.0


class CertificateApi(Protocol):
    """As much of an API server's client as is needed."""

    async def get(self, path: str) -> bytes: ...

    async def replace(self, path: str, body: object) -> bytes: ...

    async def patch(self, path: str, body: object, how: Any) -> bytes: ...


class Certificates:
    """`context` serves the certificate in force: connections from then on get a renewed one."""

    def __init__(
        self,
        api: CertificateApi,
        namespace: str,
        hosts: tuple[str, ...],
        wall: Callable[[], float],
        *,
        client_ca: Path | None = None,
        look_s: float = LOOK_S,
        lives: Lives = LIVES,
    ) -> None:
        """Clients may show what our authority has signed, or `client_ca`. Raises Denied for one that cannot be used."""
        self._api, self._path = api, f"/api/v1/namespaces/{namespace}/secrets/{SECRET}"
        self._hosts, self._wall, self._look_s, self._lives = hosts, wall, look_s, lives
        self._served = self._trusted = ""
        self.ends: dict[str, float] = {}  # by what each is for: the end of what is shared
        self.context = bare_context(client_ca)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        # Until the shared one is read nobody trusts us, but who only asks whether we live is answered.
        self._load(renewed(None, hosts, wall(), lives))

    async def run(self) -> None:
        """For ever."""
        await _keep_looking(self.look, self._look_s)

    async def look(self) -> None:
        """Renew what is due, serve what is shared, and have it trusted; raises QosError."""
        material = await self._shared()
        self._serve(material)
        self.ends = {"authority": ends(material.authority), "serving": ends(material.serving)}
        if material.client:
            self.ends["client"] = ends(material.client)
        await tell_authority(self._api, material.bundle)

    async def _shared(self) -> Material:
        while True:
            secret = await self._secret()
            data = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
            has = self._readable(data)
            wanted = renewed(has, self._hosts, self._wall(), self._lives)
            if has == wanted:
                return wanted
            secret["data"] = {name: b64encode(text.encode()).decode() for name, text in secret_data(wanted).items()}
            try:
                await self._api.replace(self._path, secret)
            except Conflict:
                continue  # someone else renewed them
            log.info(
                "certificate.renew", secret=SECRET, ends=wanted.serving.certificate.not_valid_after_utc.isoformat()
            )
            return wanted

    async def _secret(self) -> Any:
        try:
            return msgspec.json.decode(await self._api.get(self._path))
        except NotFound:
            raise Denied(f"there is no Secret {SECRET} to keep certificates in; apply deploy/ again") from None

    def _readable(self, data: dict[str, bytes]) -> Material | None:
        try:
            return read(data, f"Secret {SECRET}")
        except Denied as e:
            log.error("certificate.refused", error=str(e))  # and made anew
            return None

    def _serve(self, material: Material) -> None:
        if material.chain != self._served:
            self._load(material)
            self._served = material.chain
        if material.bundle != self._trusted:
            self.context.load_verify_locations(cadata=material.bundle)
            self._trusted = material.bundle

    def _load(self, material: Material) -> None:
        with _file(material.chain + material.serving.private) as path:
            self.context.load_cert_chain(path)


class GivenAuthority:
    """Files that somebody else renews: tells API servers what `file` holds, and follows it."""

    def __init__(self, api: CertificateApi, file: Path) -> None:
        self._api, self._file = api, file

    async def run(self) -> None:
        """For ever."""
        await _keep_looking(self.look, LOOK_S)

    async def look(self) -> None:
        """Raises QosError."""
        try:
            bundle = self._file.read_text()
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=bundle)
        except (OSError, ValueError, ssl.SSLError) as e:
            raise Denied(f"cannot use the webhook CA {self._file}: {e}") from None
        await tell_authority(self._api, bundle)


async def tell_authority(api: CertificateApi, bundle: str) -> None:
    """Have API servers trust `bundle` when they ask webhooks. A configuration that is not there is nobody's mistake:
    whoever wants no webhooks removes it."""
    encoded = b64encode(bundle.encode()).decode()
    for path in CONFIGURATIONS:
        try:
            hooks = msgspec.json.decode(await api.get(path)).get("webhooks") or ()
        except NotFound:
            continue
        steps = []
        for n, hook in enumerate(hooks):
            if hook["clientConfig"].get("caBundle") != encoded:
                steps.append({"op": "test", "path": f"/webhooks/{n}/name", "value": hook["name"]})
                steps.append({"op": "add", "path": f"/webhooks/{n}/clientConfig/caBundle", "value": encoded})
        if steps:
            await api.patch(path, steps, "json")
            log.info("certificate.tell", configuration=path.rpartition("webhookconfigurations")[0].rpartition("/")[2])


async def _keep_looking(look: Callable[[], Awaitable[None]], every_s: float) -> None:
    """For ever. Trouble with the API server leaves things as they are, until the next look."""
    while True:
        try:
            await look()
        except QosError as e:
            log.error("certificate.fail", error=str(e))
        await asyncio.sleep(every_s)


@contextmanager
def _file(text: str) -> Iterator[str]:
    """The library takes files only; this one is ours alone, and gone at once."""
    with tempfile.NamedTemporaryFile("w", prefix="j10ce-", suffix=".pem") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        yield file.name
