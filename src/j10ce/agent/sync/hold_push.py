"""Holds made on this host, sent to the control plane: each once, and none in the way of another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.errors import Conflict, Denied, NotFound, QosError, Unreachable
from j10ce.http.client import Client, Rejected
from j10ce.model import schema
from j10ce.model.kinds import API_VERSION, Condition, Hold

log = structlog.get_logger()
BASE: Final = f"/apis/{API_VERSION}/namespaces"


class Holds:
    def __init__(self, node: str) -> None:
        self._node = node
        self._pushed: dict[str, str] = {}  # what the control plane has: name to namespace
        self._withdrawn: set[str] = set()
        self._refused: dict[str, str] = {}  # what it would not have: name to reason
        self._patient = False  # leave alone what was refused

    def conditions(self) -> tuple[Condition, ...]:
        """One that says what the control plane does not know of, and why; none when it knows all."""
        if not self._refused:
            return ()
        name, why = next(iter(self._refused.items()))
        message = f"{len(self._refused)} holds of this host could not be sent to the control plane; {name}: {why}"
        return (Condition(type="HoldsSent", status="False", reason="Refused", message=message),)

    def try_again(self) -> None:
        """The control plane was away, and may be another one: what was refused is sent once more."""
        self._patient = False

    async def push(
        self, client: Client, holds: Iterable[Hold], released: frozenset[str], listed: Iterable[Hold]
    ) -> None:
        """Send what was not sent yet. `listed` is what the control plane says it has. Raises Unreachable.

        A hold that this node's token may not touch is refused like any other: the token itself has just served.
        """
        ours = {h.metadata.name: h for h in holds}
        self._refused = {name: why for name, why in self._refused.items() if name in ours or name in released}
        skipped = self._refused.keys() if self._patient else set()
        self._patient = True
        for name in ours.keys() - self._pushed.keys() - skipped:
            namespace, body = ours[name].metadata.namespace, schema.plain(self._of_this_node(ours[name]))
            if await self._tell(client, name, "POST", f"{BASE}/{namespace}/holds", body):
                self._pushed[name] = namespace
        theirs = {h.metadata.name: h.metadata.namespace for h in listed} | self._pushed
        for name in (released & theirs.keys()) - self._withdrawn - skipped:
            if await self._tell(client, name, "DELETE", f"{BASE}/{theirs[name]}/holds/{name}"):
                self._withdrawn.add(name)

    def _of_this_node(self, hold: Hold) -> Hold:
        """Made here, in force here: another host may run a workload of the same name."""
        return replace(hold, spec=replace(hold.spec, node=self._node))

    async def _tell(self, client: Client, name: str, method: str, path: str, body: object = None) -> bool:
        """Whether the control plane knows; what it has already, or has no more, is as it should be."""
        try:
            await client.call(method, path, body)
        except Unreachable:
            raise
        except QosError as e:
            if not isinstance(e, Conflict if method == "POST" else NotFound):
                self._patient = self._patient and isinstance(e, Rejected | Denied)  # a fault may pass; a refusal stands
                self._refuse(name, str(e))
                return False
        self._refused.pop(name, None)
        return True

    def _refuse(self, name: str, why: str) -> None:
        if self._refused.get(name) != why:
            log.error("hold.refused", hold=name, error=why)
        self._refused[name] = why
