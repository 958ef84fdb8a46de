"""gRPC to etcd: endpoints that take over from each other, tokens, and honest errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any, Final

import grpc
import grpc.aio

from j10ce.errors import Closed, Compacted, QosError, StoreError, Unavailable, Unsure
from j10ce.http.retry import pauses
from j10ce.store.etcd.address import EtcdAddress
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import AUTHENTICATE, WATCH, A, Method, Q

ATTEMPT_S: Final = 2.0  # an election of etcd's takes about one
PATIENCE_S: Final = 10.0
SIGN_INS: Final = 3
BUSY, DENIED, OUT_OF_RANGE, UNAUTHENTICATED = 8, 7, 11, 16  # gRPC's codes
UNKNOWN_OUTCOMES: Final = (1, 2, 4, 10, 13, 14)  # the request may have been carried out nevertheless
NOT_SENT: Final = ("failed to connect to all addresses", "errors resolving")  # as gRPC tells it; else nobody knows
USERS_CHANGED: Final = "revision of auth store is old"
CHANNEL: Final = (
    ("grpc.min_reconnect_backoff_ms", 1000),  # for how long a connection may be in the making
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),  # etcd takes more than one in five seconds for an attack
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.max_receive_message_length", -1),  # a page of large objects
    ("grpc.enable_http_proxy", 0),
)


class Gateway:
    """Used from one event loop. Calls go to one endpoint as long as it answers."""

    def __init__(self, address: EtcdAddress, *, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s  # how long a caller waits for etcd, over all endpoints
        self.fault = "etcd does not answer"  # why the last attempt failed
        self._endpoints = address.endpoints
        self._tls, self._user, self._password = address.tls, address.user, address.password
        self._at = random.randrange(len(self._endpoints))  # noqa: S311  processes spread over the members
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._methods: dict[tuple[str, str], grpc.aio.UnaryUnaryMultiCallable[Any, Any]] = {}  # by endpoint and path
        self._closed = False
        self._token = ""
        self._signing_in = asyncio.Lock()

    async def ask(
        self, method: Method[Q, A], request: Q, *, patience_s: float | None = None, attempt_s: float = ATTEMPT_S
    ) -> A:
        """A call that may be carried out twice: repeated, at the next endpoint, until one answers.

        Raises Unavailable when none does, Compacted, or StoreError with what etcd objects to.
        """
        deadline = asyncio.get_running_loop().time() + (self.patience_s if patience_s is None else patience_s)
        for pause_s in pauses():
            try:
                return await self.once(method, request, attempt_s)
            except (Unavailable, Unsure) as e:
                self.fault = str(e)
                if asyncio.get_running_loop().time() + pause_s > deadline:
                    raise Unavailable(str(e)) from None
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    async def once(self, method: Method[Q, A], request: Q, attempt_s: float = ATTEMPT_S) -> A:
        """One call at one endpoint.

        Raises Unavailable when it was not carried out, Unsure when it may have been, and others as `ask` does.
        """
        for _ in range(SIGN_INS):
            token = await self._signed_in()
            try:
                return await self._call(method, request, token, attempt_s)
            except _SignInAgain:
                self._forget(token)
        raise StoreError(f"etcd refuses every token of user {self._user}")

    async def watch(self, request: pb.WatchCreateRequest) -> AsyncGenerator[pb.WatchResponse, None]:
        """Answers without end; raises Unavailable when they end. Close it after use."""
        token, endpoint = await self._signed_in(), self._endpoint()
        # etcd keeps a watch whose caller has nothing more to ask.
        multi = self._channel(endpoint).unary_stream(
            WATCH.path, WATCH.request.SerializeToString, WATCH.answer.FromString
        )
        call = multi(pb.WatchRequest(create_request=request), metadata=_metadata(token))
        refusal: QosError = Unavailable(f"etcd does not answer: {endpoint} ended a watch")
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as e:
            refusal = _refusal(endpoint, e)
        except asyncio.CancelledError:
            self._unless_closed()
            raise
        finally:
            call.cancel()
        self.avoid(endpoint)
        if isinstance(refusal, _SignInAgain):
            self._forget(token)
        raise Unavailable(str(refusal)) if isinstance(refusal, _SignInAgain | Unsure) else refusal

    def avoid(self, endpoint: str = "") -> None:
        """Go on with the next endpoint; without a name, whichever is in use."""
        if endpoint in ("", self._endpoint()):
            self._at = (self._at + 1) % len(self._endpoints)

    async def close(self) -> None:
        self._closed = True
        for channel in self._channels.values():
            await channel.close()

    def _endpoint(self) -> str:
        return self._endpoints[self._at]

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        self._unless_closed()
        channel = self._channels.get(endpoint)
        if channel is None:
            channel = self._channels[endpoint] = self._connect(endpoint)
        return channel

    def _connect(self, endpoint: str) -> grpc.aio.Channel:
        if self._tls is None:
            return grpc.aio.insecure_channel(endpoint, CHANNEL)
        trust = grpc.ssl_channel_credentials(self._tls.authorities, self._tls.key, self._tls.certificate)
        return grpc.aio.secure_channel(endpoint, trust, CHANNEL)

    def _method(self, endpoint: str, method: Method[Q, A]) -> grpc.aio.UnaryUnaryMultiCallable[Q, A]:
        channel = self._channel(endpoint)
        call = self._methods.get((endpoint, method.path))
        if call is None:
            call = channel.unary_unary(method.path, method.request.SerializeToString, method.answer.FromString)
            self._methods[endpoint, method.path] = call
        return call

    async def _call(self, method: Method[Q, A], request: Q, token: str, attempt_s: float) -> A:
        endpoint = self._endpoint()
        try:
            return await self._method(endpoint, method)(request, timeout=attempt_s, metadata=_metadata(token))
        except grpc.aio.AioRpcError as e:
            refusal = _refusal(endpoint, e)
            if isinstance(refusal, Unavailable | Unsure):
                self.avoid(endpoint)
            raise refusal from None
        except asyncio.CancelledError:
            self._unless_closed()
            raise

    def _unless_closed(self) -> None:
        """Calls that are under way when a channel is closed are cancelled, though nobody cancelled their caller."""
        if self._closed:
            raise Closed() from None

    async def _signed_in(self) -> str:
        if self._user and not self._token:
            async with self._signing_in:
                if not self._token:
                    request = pb.AuthenticateRequest(name=self._user, password=self._password)
                    try:
                        self._token = (await self._call(AUTHENTICATE, request, "", ATTEMPT_S)).token
                    except Unsure as e:  # signing in carries nothing out
                        raise Unavailable(str(e)) from None
        return self._token

    def _forget(self, token: str) -> None:
        if self._token == token:
            self._token = ""


class Full(StoreError):
    """etcd takes nothing that needs room; deletes need none."""


class _SignInAgain(QosError):
    """The token has expired, or users were changed since."""


def _metadata(token: str) -> tuple[tuple[str, str], ...]:
    return (("token", token),) if token else ()


def _refusal(endpoint: str, e: grpc.aio.AioRpcError) -> QosError:
    code, reason = e.code().value[0], (e.details() or e.code().name).removeprefix("etcdserver: ")
    if code == UNAUTHENTICATED or USERS_CHANGED in reason:
        return _SignInAgain(reason)
    if code == OUT_OF_RANGE:
        return Compacted(f"etcd: {reason}: list again")
    if code == BUSY and "space" in reason:
        return Full(f"etcd's database is full ({reason}): compact, defragment and disarm its alarm")
    if code == BUSY:
        return Unavailable(f"etcd is busy: {endpoint}: {reason}")
    if code in UNKNOWN_OUTCOMES:
        outcome = Unavailable if reason.startswith(NOT_SENT) else Unsure
        return outcome(f"etcd does not answer: {endpoint}: {reason}")
    hint = "; grant the user readwrite on the prefix" if code == DENIED else ""
    return StoreError(f"etcd refuses: {reason}{hint}")
