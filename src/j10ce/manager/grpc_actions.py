"""What is no verb of an object, as gRPC calls: placing workloads, and enrolling nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import grpc

from j10ce.errors import Finding, Invalid
from j10ce.manager.enrolment import Enrolment, NodeCredentialRequest
from j10ce.manager.grpc_codec import message_of, plain_of
from j10ce.manager.grpc_door import Context, Door
from j10ce.manager.placement import read_terms
from j10ce.manager.placements import Placements
from j10ce.manager.proto import actions_pb2
from j10ce.manager.tokens import Ticket
from j10ce.model.kinds import Workload
from j10ce.model.schema import convert

PACKAGE: Final = "j10ce.v1alpha1"


class Actions(NamedTuple):
    placements: Placements
    enrolment: Enrolment

    def handlers(self, door: Door) -> dict[str, dict[str, Any]]:
        """By service and method."""
        return {
            f"{PACKAGE}.PlacementService": {
                "Place": _unary(door, "Placement/Place", actions_pb2.PlaceRequest, self.place),
            },
            f"{PACKAGE}.NodeCredentialService": {
                "Issue": _unary(door, "NodeCredential/Issue", actions_pb2.IssueNodeCredentialRequest, self.issue),
                "Get": _unary(door, "NodeCredential/Get", actions_pb2.GetNodeCredentialRequest, self.show),
            },
        }

    async def place(self, request: Any) -> Any:
        self.placements.enter(request.workload.metadata.namespace, dry=request.dry_run)
        told = {"for": request.hold_for} | ({"unenforced": "allow"} if request.allow_unenforced else {})
        terms = read_terms(told, dry=request.dry_run)
        if not request.HasField("workload"):
            raise Invalid([Finding("workload", None, "missing", "it is required")], "PlaceRequest")
        workload = convert(plain_of(request.workload, Workload), Workload)
        return message_of(await self.placements.place(workload, terms))

    async def issue(self, request: Any) -> Any:
        given = {"node": request.node} | ({"lifetime": request.lifetime} if request.lifetime else {})
        return message_of(await self.enrolment.issue(convert(given, NodeCredentialRequest)))

    async def show(self, request: Any) -> Any:
        return message_of(await self.enrolment.show(request.node))


def _unary(door: Door, path: str, request: Any, answer: Callable[[Any], Awaitable[Any]]) -> Any:
    async def handle(given: Any, context: Context) -> Any:
        async def answered(_: Ticket) -> Any:
            return await answer(given)

        return await door.through(context, path, answered)

    return grpc.unary_unary_rpc_method_handler(
        handle, request_deserializer=request.FromString, response_serializer=lambda made: made.SerializeToString()
    )
