"""The agent's sockets: a unix socket for people and hooks, and, if configured, loopback TCP for /metrics alone.

Who may do what is decided by the kernel's word on the peer: root and the agent's own user may do everything, members of
the group what is for them, whoever else can connect may read.
"""

from __future__ import annotations

import grp
import os
import socket
import struct
from pathlib import Path
from typing import Final

from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.routes import ROUTES, Context, For, Route, find
from j10ce.errors import Busy
from j10ce.http import server
from j10ce.http.server import Request, Response

SO_PEERGROUPS: Final = 59
MOST_GROUPS: Final = 256  # what Python takes from a socket; the groups of who is in more count for nothing
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]", "::1", "")


def bind(path: Path, mode: int, group: str) -> socket.socket:
    """A unix socket that only the permitted can open; a stale one of an agent that was killed is replaced."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    sock.bind(str(draft))
    gid = group_id(group)
    if gid is not None and os.geteuid() == 0:
        os.chown(draft, -1, gid)
    os.chmod(draft, mode)
    draft.replace(path)  # it appears with its rights, never without
    return sock


def unbind(path: Path, sock: socket.socket) -> None:
    sock.close()
    path.unlink(missing_ok=True)


def bind_metrics(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), int(port)))
    except OSError as e:
        sock.close()
        raise Busy(f"cannot serve metrics on {address}: {e.strerror}") from e
    return sock


def group_id(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def caller_of(sock: socket.socket) -> Caller:
    """The peer as the kernel vouches for it."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, server.CREDENTIALS.size)
    pid, uid, gid = server.CREDENTIALS.unpack(raw)
    try:
        data = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * MOST_GROUPS)
    except OSError:
        data = b""
    return Caller(pid, uid, gid, frozenset(g for (g,) in struct.iter_unpack("I", data)))


class Server:
    """Rights and routes in front of the handlers."""

    def __init__(self, context: Context, group: str) -> None:
        self._context = context
        self._group, self._gid = group, group_id(group)

    async def run(self, sock: socket.socket) -> None:
        await server.listen(sock, self.answer)

    async def run_metrics(self, sock: socket.socket) -> None:
        await server.listen(sock, self.answer_metrics)

    async def answer(self, request: Request) -> Response:
        route, arguments = find(request.method, request.path)
        if isinstance(route, Response):
            return route
        caller = caller_of(request.sock)
        if problem := self._problem(route, caller):
            return server.refuse(403, problem)
        return await self._call(route, request, caller, arguments)

    async def answer_metrics(self, request: Request) -> Response:
        """Loopback is open to every local user and, through a browser, to web pages: Host and Origin must be local."""
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if host.lower() not in LOCAL_HOSTS or "origin" in request.headers:
            return server.refuse(403, "a foreign Host or Origin")
        if (request.method, request.path) != ("GET", "/metrics"):
            return server.refuse(404, "only GET /metrics is served here; the rest is on the unix socket")
        return await self._call(ROUTES["GET /metrics"], request, Caller(0, 65534, 65534), {})

    def _problem(self, route: Route, caller: Caller) -> str:
        """Why this caller may not; empty when it may."""
        if caller.trusted or route.who is For.ANYONE:
            return ""
        if self._gid is None or self._gid not in {caller.gid, *caller.groups}:
            return f"uid {caller.uid} may only look; use sudo, or join group {self._group}"
        if route.who is For.ROOT:
            verb = route.path.rpartition("/")[2]
            return f"only root, or the user that the agent runs as, may {verb}; this is uid {caller.uid}"
        return ""

    async def _call(self, route: Route, request: Request, caller: Caller, arguments: dict[str, str]) -> Response:
        done = await route.handler(self._context, request, caller, **arguments)
        return done if isinstance(done, Response) else server.answer(done)
