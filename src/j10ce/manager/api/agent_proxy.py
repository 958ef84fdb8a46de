"""Workloads are not stored: what this host runs is its agent's knowledge, asked for over the agent's socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from j10ce.errors import Unreachable
from j10ce.http.client import Client, Peer
from j10ce.http.status import Refusal, document_of, status_of
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import Object
from j10ce.model.schema import convert
from j10ce.model.stored import Listing, key_of

ANSWER_S: Final = 10.0


class AgentProxy:
    """An agent may be newer than this manager: what it answers beyond our knowledge is left out."""

    def __init__(self, socket: Path | None) -> None:
        self._socket = socket

    async def object(self, path: str, kind: Kind) -> Object:
        """One object of the agent; raises what the agent refused it with, or Unreachable."""
        return convert(await self._get(path), kind.struct, [])  # type: ignore[return-value]

    async def list(self, path: str, kind: Kind) -> Listing:
        answer = await self._get(path)
        items: tuple[Object, ...] = tuple(convert(item, kind.struct, []) for item in answer["items"])  # type: ignore[misc]
        return Listing(tuple(sorted(items, key=key_of)), answer.get("metadata", {}).get("resourceVersion", ""))

    async def _get(self, path: str) -> Any:
        if self._socket is None:
            raise Unreachable("this manager has no agent beside it; ask the agents of the hosts")
        agent = Client(Peer(f"unix:{self._socket}"))
        try:
            head, body = await agent.ask("GET", path, within_s=ANSWER_S)
        except Unreachable as e:
            raise Unreachable(f"the agent beside this manager does not answer: {e}") from None
        finally:
            await agent.close()
        if head.status_code >= 400:
            said = status_of(body)
            message = said.message or f"the agent answered {head.status_code}"
            raise Refusal(head.status_code, message, reason=said.reason)
        return document_of(body, "the agent beside this manager")
