"""HTTP to etcd's JSON gateway: endpoints that take over from each other, tokens, and honest errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Final, TypeVar

import aiohttp
import msgspec

from j10ce.errors import Closed, Compacted, QosError, StoreError, Unavailable, Unsure
from j10ce.store.etcd_address import EtcdAddress
from j10ce.store.etcd_wire import Credentials, Token, Trouble, Word
from j10ce.store.lines import lines
from j10ce.store.patience import pauses

ATTEMPT_S: Final = 2.0  # an election of etcd's takes about one
CONNECT_S: Final = 1.0
PATIENCE_S: Final = 10.0
SIGN_INS: Final = 3
BUSY, DENIED, OUT_OF_RANGE, UNAUTHENTICATED = 8, 7, 11, 16  # gRPC's codes
UNKNOWN_OUTCOMES: Final = (1, 2, 4, 10, 13, 14)  # the request may have been carried out nevertheless
USERS_CHANGED: Final = "revision of auth store is old"
W = TypeVar("W")


class Gateway:
    """Used from one event loop. Calls go to one endpoint as long as it answers."""

    def __init__(self, address: EtcdAddress, *, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s  # how long a caller waits for etcd, over all endpoints
        self.fault = "etcd does not answer"  # why the last attempt failed
        self._endpoints = address.endpoints
        self._tls, self._user, self._password = address.tls, address.user, address.password
        self._at = random.randrange(len(self._endpoints))  # noqa: S311  processes spread over the members
        self._session: aiohttp.ClientSession | None = None
        self._token = ""
        self._signing_in = asyncio.Lock()

    async def ask(
        self, path: str, body: Word, into: type[W], *, patience_s: float | None = None, attempt_s: float = ATTEMPT_S
    ) -> W:
        """A call that may be carried out twice: repeated, at the next endpoint, until one answers.

        Raises Unavailable when none does, Compacted, or StoreError with what etcd objects to.
        """
        deadline = asyncio.get_running_loop().time() + (self.patience_s if patience_s is None else patience_s)
        for pause_s in pauses():
            try:
                return await self.once(path, body, into, attempt_s)
            except (Unavailable, Unsure) as e:
                self.fault = str(e)
                if asyncio.get_running_loop().time() + pause_s > deadline:
                    raise Unavailable(str(e)) from None
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    async def once(self, path: str, body: Word, into: type[W], attempt_s: float = ATTEMPT_S) -> W:
        """One call at one endpoint.

        Raises Unavailable when it was not carried out, Unsure when it may have been, and others as `ask` does.
        """
        data = msgspec.json.encode(body)
        for _ in range(SIGN_INS):
            token = await self._signed_in()
            try:
                return _decoded(await self._post(path, data, token, attempt_s), into)
            except _SignInAgain:
                self._token = "" if self._token == token else self._token
        raise StoreError(f"etcd refuses every token of user {self._user}")

    async def lines(self, path: str, body: Word) -> AsyncGenerator[bytes, None]:
        """The lines of an answer without end; raises Unavailable when it ends. Close it after use."""
        token, endpoint = await self._signed_in(), self._endpoint()
        try:
            async with self._http().post(
                f"{endpoint}/v3/{path}",
                data=msgspec.json.encode(body),
                headers=_headers(token),
                timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_S),
            ) as answer:
                if answer.status != 200:
                    raise _refusal(endpoint, await answer.read())
                async for line in lines(answer.content.iter_any()):
                    yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            self.avoid(endpoint)
            raise Unavailable(_silence(endpoint, e)) from None
        except _SignInAgain:
            self._token = "" if self._token == token else self._token
        self.avoid(endpoint)
        raise Unavailable(f"etcd does not answer: {endpoint} ended a watch")

    def avoid(self, endpoint: str = "") -> None:
        """Go on with the next endpoint; without a name, whichever is in use."""
        if endpoint in ("", self._endpoint()):
            self._at = (self._at + 1) % len(self._endpoints)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    def _endpoint(self) -> str:
        return self._endpoints[self._at]

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        if self._session.closed:
            raise Closed()
        return self._session

    async def _post(self, path: str, data: bytes, token: str, attempt_s: float = ATTEMPT_S) -> bytes:
        endpoint = self._endpoint()
        limits = aiohttp.ClientTimeout(total=attempt_s, sock_connect=min(attempt_s, CONNECT_S))
        try:
            async with self._http().post(
                f"{endpoint}/v3/{path}", data=data, headers=_headers(token), timeout=limits
            ) as answer:
                text = await answer.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as e:
            self.avoid(endpoint)
            raise Unavailable(_silence(endpoint, e)) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            self.avoid(endpoint)
            raise Unsure(_silence(endpoint, e)) from None
        if answer.status == 200:
            return text
        refusal = _refusal(endpoint, text)
        if isinstance(refusal, Unavailable | Unsure):
            self.avoid(endpoint)
        raise refusal

    async def _signed_in(self) -> str:
        if self._user and not self._token:
            async with self._signing_in:
                if not self._token:
                    body = msgspec.json.encode(Credentials(self._user, self._password))
                    try:
                        self._token = _decoded(await self._post("auth/authenticate", body, ""), Token).token
                    except Unsure as e:  # signing in carries nothing out
                        raise Unavailable(str(e)) from None
        return self._token


class _SignInAgain(QosError):
    """The token has expired, or users were changed since."""


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": token} if token else {}


def _decoded(text: bytes, into: type[W]) -> W:
    try:
        # Not strict: the gateway writes 64-bit numbers as strings.
        return msgspec.json.decode(text, type=into, strict=False)
    except msgspec.MsgspecError as e:
        raise Unsure(f"etcd's answer is not understood: {e}") from None


def _silence(endpoint: str, e: Exception) -> str:
    return f"etcd does not answer: {endpoint}: {str(e) or type(e).__name__}"


def _refusal(endpoint: str, text: bytes) -> QosError:
    try:
        trouble = msgspec.json.decode(text, type=Trouble, strict=False)
    except msgspec.MsgspecError:
        return Unsure(f"etcd does not answer: {endpoint}: {text[:200].decode(errors='replace')}")
    told = (trouble.message or trouble.error).removeprefix("etcdserver: ")
    if trouble.code == UNAUTHENTICATED or USERS_CHANGED in told:
        return _SignInAgain(told)
    if trouble.code == OUT_OF_RANGE:
        return Compacted(f"etcd: {told}: list again")
    if trouble.code == BUSY and "space" in told:
        return StoreError(f"etcd's database is full ({told}): compact, defragment and disarm its alarm")
    if trouble.code == BUSY:
        return Unavailable(f"etcd is busy: {endpoint}: {told}")
    if trouble.code in UNKNOWN_OUTCOMES:
        return Unsure(f"etcd does not answer: {endpoint}: {told}")
    hint = "; grant the user readwrite on the prefix" if trouble.code == DENIED else ""
    return StoreError(f"etcd refuses: {told}{hint}")
