"""What is no verb of a stored object, as gRPC calls: placing, enrolling, and what a node obeys and a host runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.daemon.pace import Slices
from j10ce.errors import Finding, Invalid
from j10ce.manager.access.enrolment import Enrolment, NodeCredentialRequest
from j10ce.manager.access.roles import DOCUMENT, enter
from j10ce.manager.api import query
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.document_watch import document_lines
from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import read_terms
from j10ce.manager.api.verbs import page
from j10ce.manager.asgi.requests import BASE
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.lines import Lines
from j10ce.manager.grpc.codec import list_meta, message_of, plain_of
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.proto import actions_pb2, requests_pb2
from j10ce.manager.grpc.visit import Visit
from j10ce.manager.grpc.watch import send_all
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Workload
from j10ce.model.schema import convert, convert_ours, parse
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.validation import syntax

PACKAGE: Final = "j10ce.v1alpha1"
WORKLOAD: Final = KINDS["Workload"]


class Actions(NamedTuple):
    placements: Placements
    enrolment: Enrolment
    view: View
    agent: AgentProxy
    lines: Lines

    def handlers(self, door: Door, stop: asyncio.Event) -> dict[str, dict[str, Any]]:
        """By service and method. `stop` ends watches."""
        asked: dict[tuple[str, str], tuple[Any, Callable[[Any], Awaitable[Any]]]] = {
            ("Placement", "Place"): (actions_pb2.PlaceRequest, self.place),
            ("NodeCredential", "Issue"): (actions_pb2.IssueNodeCredentialRequest, self.issue),
            ("NodeCredential", "Get"): (actions_pb2.GetNodeCredentialRequest, self.show),
            ("NodeDocument", "Get"): (actions_pb2.GetNodeDocumentRequest, self.document),
            ("Workload", "Get"): (requests_pb2.GetRequest, self.workload),
            ("Workload", "List"): (requests_pb2.ListRequest, self.workloads),
        }
        services: dict[str, dict[str, Any]] = {}
        for (service, method), (request, answer) in asked.items():
            calls = services.setdefault(f"{PACKAGE}.{service}Service", {})
            calls[method] = door.unary(f"{service}/{method}", request, answer)
        services[f"{PACKAGE}.NodeDocumentService"]["Watch"] = door.watch(
            "NodeDocument/Watch", partial(self.watch, stop)
        )
        return services

    async def place(self, request: Any) -> Any:
        self.placements.enter(request.workload.metadata.namespace, dry=request.dry_run)
        params = {"for": request.hold_for} | ({"unenforced": "allow"} if request.allow_unenforced else {})
        terms = read_terms(params, dry=request.dry_run)
        if not request.HasField("workload"):
            raise Invalid([Finding("workload", None, "missing", "it is required")], "PlaceRequest")
        workload = convert(plain_of(request.workload, Workload), Workload)
        return message_of(await self.placements.place(workload, terms))

    async def issue(self, request: Any) -> Any:
        given = {"node": request.node} | ({"lifetime": request.lifetime} if request.lifetime else {})
        return message_of(await self.enrolment.issue(convert(given, NodeCredentialRequest)))

    async def show(self, request: Any) -> Any:
        return message_of(await self.enrolment.show(request.node))

    async def document(self, request: Any) -> Any:
        enter("get", DOCUMENT, name=request.node)
        _check(syntax.name("node", request.node))
        return message_of(parse((await self.view.document(request.node)).data, NodeDocument))

    async def events(self, node: str, known: str) -> AsyncGenerator[Any]:
        async with aclosing(document_lines(self.view, node, known, self.lines)) as lines:
            async for parts in lines:
                event = msgspec.json.decode(b"".join(parts))
                bare = event["type"] == "BOOKMARK"
                document: Any = None if bare else message_of(convert_ours(event["object"], NodeDocument))
                type_, hash_ = f"EVENT_TYPE_{event['type']}", event["object"]["hash"]
                yield actions_pb2.NodeDocumentEvent(type=type_, document=document, hash=hash_)

    async def workload(self, request: Any) -> Any:
        enter("get", WORKLOAD.name, request.namespace, request.name)
        _check(syntax.namespace("namespace", request.namespace), syntax.name("name", request.name))
        path = f"{BASE}/namespaces/{request.namespace}/{WORKLOAD.plural}/{request.name}"
        return message_of(await self.agent.object(path, WORKLOAD))

    async def workloads(self, request: Any) -> Any:
        enter("list", WORKLOAD.name, request.namespace)
        _check(syntax.namespace("namespace", request.namespace) if request.namespace else ())
        params = {"labelSelector": request.label_selector, "fieldSelector": request.field_selector}
        asked = query.read({**params, "limit": str(request.limit), "continue": request.continue_token}, WORKLOAD)
        inside = f"/namespaces/{request.namespace}" if request.namespace else ""
        listing = await self.agent.list(f"{BASE}{inside}/{WORKLOAD.plural}", WORKLOAD)
        listed = await page(listing, asked, Slices())
        shown: Any = map(message_of, listed.items)
        return actions_pb2.WorkloadList(metadata=list_meta(listed), items=shown)

    async def watch(self, stop: asyncio.Event, visit: Visit) -> None:
        given = await visit.read(actions_pb2.WatchNodeDocumentRequest)
        enter("watch", DOCUMENT, name=given.node)
        _check(syntax.name("node", given.node))
        await send_all(self.events(given.node, given.hash), visit, stop)


def _check(*findings: Iterable[Finding]) -> None:
    if flat := [finding for several in findings for finding in several]:
        raise Invalid(flat, "request")
