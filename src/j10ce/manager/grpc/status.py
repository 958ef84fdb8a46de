"""Errors as gRPC spells them: a code, and a google.rpc.Status that says all that is wrong."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

from j10ce.errors import QosError
from j10ce.http.status import Refusal, answer_to
from j10ce.manager.asgi import status
from j10ce.model.kinds import GROUP
from j10ce.model.stored import Key

NOTHING: Final = Key("", "", "")
# A client takes 8 KiB of metadata in all, and bytes travel as base64.
MOST_MESSAGE: Final = 1024
MOST_DETAILS: Final = 4096


class Abort(NamedTuple):
    """What a context is aborted with."""

    code: grpc.StatusCode
    message: str
    metadata: tuple[tuple[str, bytes], ...]


async def refuse(context: grpc.aio.ServicerContext[Any, Any], error: QosError) -> NoReturn:
    await context.abort(*abort_of(error))


def abort_of(error: QosError, about: Key = NOTHING) -> Abort:
    status = rich(error, about)
    return Abort(code_of(error), status.message, (("grpc-status-details-bin", status.SerializeToString()),))


def code_of(error: QosError) -> grpc.StatusCode:
    return grpc.StatusCode[answer_to(error).grpc]


def rich(error: QosError, about: Key = NOTHING) -> Status:
    """The REST front end's Status object in google.rpc's words."""
    body = status.status(error)
    number: int = code_of(error).value[0]
    made = Status(code=number, message=_cut(body["message"], MOST_MESSAGE))
    _add(made, ErrorInfo(reason=_shout(body["reason"]), domain=GROUP))
    if about.kind:
        name = f"{about.namespace}/{about.name}" if about.namespace else about.name
        _add(made, ResourceInfo(resource_type=f"{GROUP}/{about.kind}", resource_name=name))
    if isinstance(error, Refusal) and (wait_s := (error.headers or {}).get("retry-after")):
        retry = RetryInfo()
        retry.retry_delay.seconds = int(wait_s)
        _add(made, retry)
    _add_causes(made, body.get("details", {}).get("causes", ()), body["code"])
    return made


def _add_causes(made: Status, causes: Any, code: int) -> None:
    """As many as fit; the last one says how many did not."""
    room = MOST_DETAILS - made.ByteSize()
    detail: BadRequest | PreconditionFailure = PreconditionFailure() if code == 409 else BadRequest()
    for index, cause in enumerate(causes):
        field, text = cause.get("field", ""), _cut(cause.get("message", ""), MOST_MESSAGE)
        if detail.ByteSize() + len(field.encode()) + len(text.encode()) + 200 > room:
            _add_cause(detail, "", f"and {len(causes) - index} more; the REST API lists more of them", "")
            break
        _add_cause(detail, field, text, cause.get("reason", ""))
    if causes:
        _add(made, detail)


def _add_cause(detail: BadRequest | PreconditionFailure, field: str, text: str, reason: str) -> None:
    if isinstance(detail, BadRequest):
        detail.field_violations.add(field=field, description=text, reason=_shout(reason))
    else:
        detail.violations.add(type=_shout(reason), subject=field, description=text)


def _add(made: Status, detail: Message) -> None:
    packed = Packed()
    packed.Pack(detail)
    made.details.append(packed)


def _shout(reason: str) -> str:
    """NotFound is NOT_FOUND."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", reason).upper()


def _cut(text: str, most: int) -> str:
    return text if len(text.encode()) <= most else text.encode()[: most - 4].decode(errors="ignore") + " …"
