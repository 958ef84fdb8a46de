"""How a node gets a token of its own: with a bootstrap token the first time, with its own token ever after."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, Literal

import structlog
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from j10ce.errors import Conflict, Denied, Finding, Invalid, NotFound, Unreachable
from j10ce.http.status import Refusal
from j10ce.manager.access.roles import ENROLMENT, enter
from j10ce.manager.access.tokens import Keyring, entry, make
from j10ce.manager.asgi.requests import JSON_TYPES, is_dry, not_allowed, read_body
from j10ce.manager.identity import Caller, Role, current
from j10ce.model.kinds import API_VERSION, Credential, CredentialSpec, Meta, NodeQoS, Strict
from j10ce.model.quantity import Duration
from j10ce.model.schema import encode, parse_once
from j10ce.policy.validation import syntax
from j10ce.policy.validation.credential import NODE_PREFIX
from j10ce.store.store import ABSENT

log = structlog.get_logger()
LIFE_S: Final = 30 * 86400.0
SHORTEST_S: Final = 60.0
OVERLAP_S: Final = 600.0  # the old token of a rotation goes on so long: an answer may be lost, a host may die
MOST_TRIES: Final = 20
PAUSE_S: Final = 0.1
PRIVATE: Final = {"cache-control": "no-store"}


class NodeCredentialRequest(Strict, frozen=True, kw_only=True):
    node: str
    lifetime: Duration | UnsetType = UNSET  # 30 days when not said, and at most
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["NodeCredential"] = "NodeCredential"


class NodeCredential(Strict, frozen=True, kw_only=True, omit_defaults=False):
    node: str
    token: str | UnsetType = UNSET  # shown once
    expires: datetime | UnsetType = UNSET
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["NodeCredential"] = "NodeCredential"


class Enrolment:
    def __init__(self, keyring: Keyring) -> None:
        self._keyring, self._store = keyring, keyring.store
        self._counting = asyncio.Lock()

    async def handle_issue(self, request: Request) -> Response:
        """POST: a token for a node, shown this once."""
        enter("create", ENROLMENT)
        if request.method != "POST":
            raise not_allowed(request, ("POST",))
        wish = parse_once(await read_body(request, JSON_TYPES), NodeCredentialRequest)
        enter("create", ENROLMENT, name=wish.node)
        if is_dry(request):
            raise Refusal(400, "a token cannot be issued for a rehearsal; leave dryRun out")
        return _shown(await self.issue(wish), 201)

    async def handle_show(self, request: Request) -> Response:
        """GET: until when the node's token counts; nothing when it does not end."""
        node = request.path_params["node"]
        enter("get", ENROLMENT, name=node)
        if request.method != "GET":
            raise not_allowed(request, ("GET",))
        return _shown(await self.show(node), 200)

    async def issue(self, wish: NodeCredentialRequest) -> NodeCredential:
        enter("create", ENROLMENT, name=wish.node)
        if findings := [*_named(wish.node), *_life(wish.lifetime)]:
            raise Invalid(findings, ENROLMENT)
        caller = current().caller
        life_s = LIFE_S if wish.lifetime is UNSET else wish.lifetime.seconds
        expires = datetime.fromtimestamp(int(self._keyring.wall() + life_s), UTC)
        if not self._keyring.synced.is_set():
            raise Unreachable("credentials are still being read; ask again")
        if caller.role is Role.NODE:
            token = await self._rotate(caller, expires)
        else:
            token = await self._enrol(caller, wish.node, expires)
        log.info("node.enrol", node=wish.node, by=caller.name, expires=expires.isoformat())
        return NodeCredential(node=wish.node, token=token, expires=expires)

    async def show(self, node: str) -> NodeCredential:
        enter("get", ENROLMENT, name=node)
        if findings := [*_named(node)]:
            raise Invalid(findings, ENROLMENT)
        caller = current().caller
        credential = await self._own(current().credential if caller.role is Role.NODE else NODE_PREFIX + node)
        return NodeCredential(node=node, expires=credential.spec.expires if credential else UNSET)

    async def _enrol(self, caller: Caller, node: str, expires: datetime) -> str:
        """Whoever holds a bootstrap token must not become a node that is there already: the store itself is asked,
        and what it said must still be so when the fresh credential is written."""
        name = NODE_PREFIX + node
        held = await self._own(name)
        live = self._keyring.speakers(node)
        if held is not None and entry(name, held.spec).expires > self._keyring.wall():
            live = [name, *(other for other in live if other != name)]
        if caller.role is Role.ADMIN:  # may rotate what the node has, not what is kept elsewhere
            live = [other for other in live if other != name]
        if live:
            raise Conflict(
                f"{node} has the credential {live[0]}; `j10ce-qos token revoke {live[0]}` before it enrols again"
            )
        if caller.role is Role.BOOTSTRAP:
            await self._check_silent(node)
            await self._use(current().credential)
        token, hash_ = make(name)
        spec = CredentialSpec(role="node", node=node, hash=hash_, expires=expires)
        fresh = Credential(metadata=held.metadata if held else Meta(name=name), spec=spec)
        await self._put(held, fresh)
        return token

    async def _check_silent(self, node: str) -> None:
        """Of certificates the store knows nothing, but of whom reports by one: as the leader says, or is yet to say."""
        try:
            node_qos = await self._store.get("NodeQoS", "", node)
        except NotFound:
            return
        if not isinstance(node_qos, NodeQoS) or node_qos.status.node.heartbeat is UNSET:
            return
        if not any(c.type == "Ready" and c.status == "Unknown" for c in node_qos.status.conditions):
            has = "it has a certificate, or its credential was just revoked"
            raise Conflict(f"{node} reports: {has}; enrol it once it is silent, or ask an administrator to")

    async def _use(self, name: str) -> None:
        """One use less. A rack that boots comes all at once: here in a row, across managers again and again."""
        async with self._counting:
            for _ in range(MOST_TRIES):
                try:
                    return await self._count_down(name)
                except Conflict:
                    await asyncio.sleep(random.uniform(0.0, PAUSE_S))  # noqa: S311  a pause, not a secret
        raise Conflict(f"too many nodes enrol with {name} at once; try again")

    async def _count_down(self, name: str) -> None:
        credential = await self._own(name)
        if credential is None or credential.spec.uses is UNSET:
            return  # of the auth file, where nothing is counted
        if credential.spec.uses <= 0:
            raise Denied(f"the bootstrap token {name} is used up; ask an administrator for another")
        current().announce()
        spent = replace(credential, spec=replace(credential.spec, uses=credential.spec.uses - 1))
        await self._store.put(spent, expect=credential.metadata.resource_version)

    async def _rotate(self, caller: Caller, expires: datetime) -> str:
        """A node shows its token and gets another. A certificate is renewed where it comes from, and so is a token
        of the auth file."""
        act = current()
        credential = await self._own(act.credential) if act.proof else None
        if credential is None or (credential.spec.role, credential.spec.node) != ("node", caller.node):
            raise Denied(f"what {caller.node} was recognised by is no Credential object; change it where it comes from")
        token, hash_ = make(act.credential)
        overlap = datetime.fromtimestamp(int(self._keyring.wall() + OVERLAP_S), UTC)
        # What the node has just shown goes on, not what was issued last: that answer may have got lost.
        shown = f"sha256:{act.proof.hex()}"
        spec = replace(credential.spec, hash=hash_, expires=expires, former_hash=shown, former_expires=overlap)
        await self._put(credential, replace(credential, spec=spec))
        return token

    async def _put(self, old: Credential | None, fresh: Credential) -> None:
        act = current()
        act.before, act.after = old, fresh
        act.announce()
        try:
            stored = await self._store.put(fresh, expect=old.metadata.resource_version if old else ABSENT)
        except Conflict:
            raise Conflict(f"someone else has just changed {fresh.metadata.name}; ask again") from None
        if isinstance(stored, Credential):
            self._keyring.take(stored)

    async def _own(self, name: str) -> Credential | None:
        if self._keyring.is_static(name):
            return None
        try:
            stored = await self._store.get("Credential", "", name)
        except NotFound:
            return None
        return stored if isinstance(stored, Credential) else None


def _named(node: str) -> Iterator[Finding]:
    return syntax.name("node", node, most=253 - len(NODE_PREFIX))


def _life(lifetime: Duration | UnsetType) -> list[Finding]:
    if lifetime is UNSET or SHORTEST_S <= lifetime.seconds <= LIFE_S:
        return []
    return [Finding("lifetime", str(lifetime), "out of range", "between 1m and 30d")]


def _shown(credential: NodeCredential, code: int) -> Response:
    return Response(encode(credential), code, PRIVATE, "application/json")
