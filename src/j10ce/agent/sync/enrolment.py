"""How this node comes by its token: enrolled with a bootstrap token, renewed with its own long before that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import structlog

from j10ce.agent.sync.servers import Backoff, Servers
from j10ce.daemon.secret_files import write_private
from j10ce.errors import Denied
from j10ce.http import client
from j10ce.http.client import Peer
from j10ce.model.kinds import API_VERSION

log = structlog.get_logger()
PATH: Final = f"/apis/{API_VERSION}/nodecredentials"
ISSUED: Final = "j10ce.node."
RENEWED_AFTER: Final = 2 / 3  # of what is left: there is time to try for days before it ends
LOOK_S: Final = 3600.0  # a sleeping machine's clock goes on; so the calendar is looked at, not counted


class Enrolment:
    """`peer.token_file` is written, mode 0600; `bootstrap` is only read. Without a control plane it keeps trying."""

    def __init__(self, peer: Peer, node: str, bootstrap: str, wall: Callable[[], float], *, lifetime: str = "") -> None:
        self._servers, self._node, self._bootstrap = Servers(peer, node), node, bootstrap
        self._file, self._wall = Path(peer.token_file), wall
        self._wish = {"node": node} | ({"lifetime": lifetime} if lifetime else {})

    async def run(self) -> None:
        """Have a token, for ever. A failure is logged once, and tried again."""
        backoff, logged = Backoff(), ""
        while True:
            peer = self._servers.current
            try:
                expires = await self._ensure(peer)
                if expires is None:
                    return  # given by hand, to be renewed by hand
                backoff.reset()
                await self._rest(expires)
                await self._take(peer, "renewed")
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                if str(e) != logged:
                    log.warning("enrolment.fail", server=peer.url, error=str(e))
                logged = str(e)
                self._servers.leave(peer)
                await backoff.wait(e)

    async def _ensure(self, peer: Peer) -> float | None:
        """When the token ends; None: never. One that is missing or refused is replaced by a fresh one."""
        if self._file.exists():
            try:
                return _moment(await client.call(peer, "GET", f"{PATH}/{self._node}"))
            except Denied:
                if not self._bootstrap:
                    raise
        return _moment(await self._take(peer._replace(token_file=self._bootstrap), "enrolled"))

    async def _take(self, peer: Peer, how: str) -> dict[str, Any]:
        answer: dict[str, Any] = await client.call(peer, "POST", PATH, self._wish)
        write_private(self._file, answer["token"] + "\n")
        log.info("enrolment.done", how=how, node=self._node, expires=answer["expires"])
        return answer

    async def _rest(self, expires: float) -> None:
        left_s = (expires - self._wall()) * RENEWED_AFTER
        due = self._wall() + left_s
        while left_s > 0:
            await asyncio.sleep(min(left_s, LOOK_S))
            left_s = due - self._wall()


def wanted(peer: Peer, bootstrap: str) -> bool:
    """Whether this node's token is one that the control plane issues, and not one that an operator placed."""
    if not peer.token_file or bootstrap:
        return bool(peer.token_file)
    try:
        return Path(peer.token_file).read_text().startswith(ISSUED)
    except OSError:
        return False


def _moment(answer: dict[str, Any]) -> float | None:
    return datetime.fromisoformat(answer["expires"]).timestamp() if answer.get("expires") else None
