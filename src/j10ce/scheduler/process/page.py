"""What the scheduler answers over HTTP: the debug page, health, metrics.

The page is for the machine itself; the health of a probe from elsewhere says nothing about pods. What took long to make
is given again for a while: else whoever asks without end would leave the scheduler no time.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from j10ce.errors import Denied, Finding, Invalid, cut
from j10ce.http.server import Request, Response, refuse, text
from j10ce.scheduler.process.metrics import SchedulerMetrics

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
FORMATS: Final = ("", "table", "json")
SHARE: Final = 0.02  # of the time goes into making one form of the page at most
Table = Callable[[int], str]  # version 1 or 2


class Shown(NamedTuple):
    """What the page is made of."""

    table: Table
    data: Callable[[], bytes]  # the same as JSON
    problem: Callable[[], str]  # why this scheduler cannot do its work; empty when it can
    role: Callable[[], str]
    metrics: SchedulerMetrics


class MadePage(NamedTuple):
    body: bytes
    until: float  # by the clock: it is made anew after that


class Page:
    def __init__(self, shown: Shown, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = shown
        self._clock = clock
        self._made: dict[str, MadePage] = {}

    async def __call__(self, request: Request) -> Response:
        """All there is."""
        if request.method not in ("GET", "HEAD"):
            return refuse(405, f"{cut(request.method)} {cut(request.path)}: the page can only be read")
        if not _local(request.headers) or "origin" in request.headers:
            return refuse(403, "the page is for this machine: ask for 127.0.0.1 or localhost")
        if request.path == "/":
            return self._table(request.query)
        if request.path == "/metrics":
            return Response(200, self._shown.metrics.render(), "text/plain; version=0.0.4; charset=utf-8")
        return self._health(request)

    async def health(self, request: Request) -> Response:
        """For probes from elsewhere."""
        if request.method not in ("GET", "HEAD"):
            return refuse(405, f"{cut(request.method)} {cut(request.path)}: health can only be read")
        return self._health(request)

    def _health(self, request: Request) -> Response:
        if request.path in ("/healthz", "/livez"):
            return text("ok\n")
        if request.path == "/readyz":
            problem = self._shown.problem()
            role = f"role: {self._shown.role()}\n" if "verbose" in request.query else ""
            return text(f"{problem}\n{role}", 503) if problem else text(f"ok\n{role}")
        return refuse(404, f"there is no {cut(request.path)}; see /, /metrics, /healthz and /readyz")

    def _table(self, query: Mapping[str, str]) -> Response:
        form, version = query.get("format", ""), query.get("v", "1")
        if form not in FORMATS or version not in ("1", "2"):
            return refuse(400, f"?format={cut(form)}&v={cut(version)}: format is table or json, v is 1 or 2")
        if form == "json":
            return Response(200, self._once("json", self._shown.data))
        body = self._once(version, lambda: self._shown.table(int(version)).encode())
        return Response(200, body, "text/plain; charset=utf-8")

    def _once(self, form: str, make: Callable[[], bytes]) -> bytes:
        began, made = self._clock(), self._made.get(form)
        if made is None or began >= made.until:
            body = make()
            ended = self._clock()
            made = self._made[form] = MadePage(body, ended + (ended - began) / SHARE)
        return made.body


def bind(address: str, option: str, *, loopback: bool) -> socket.socket:
    """The bound socket. Raises Invalid for what is no address, Denied for one that cannot be had."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Invalid([Finding(option, address, "not address:port", "such as 127.0.0.1:10000")], "argument")
    if loopback and host not in LOOPBACK:
        advice = "it shows names of pods to whoever asks: use 127.0.0.1, and kubectl exec or port-forward"
        raise Invalid([Finding(option, address, "not an address of this machine alone", advice)], "argument")
    try:
        family, kind, *_, resolved = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
    except OSError as e:
        raise Denied(f"cannot listen on {address} ({option}): {e.strerror or e}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(resolved)
    except OSError as e:
        made.close()
        raise Denied(f"cannot listen on {address} ({option}): {e.strerror or e}") from None
    return made


def _local(headers: Mapping[str, str]) -> bool:
    """Not a page of somebody else in a browser of this machine, whose name leads here."""
    host = headers.get("host", "localhost")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name.strip("[]") in LOOPBACK
