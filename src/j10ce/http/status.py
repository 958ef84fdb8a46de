"""Errors and codes: the one table by which servers answer and clients understand, in both directions.

an error of ours  ──►  HTTP code, Kubernetes' reason, gRPC's code, exit code of a command
an HTTP code      ──►  the error that a client of ours raises
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from j10ce.errors import (
    AlreadyExists,
    Busy,
    Compacted,
    Conflict,
    Denied,
    Finding,
    Invalid,
    Malformed,
    NotFound,
    QosError,
    StoreError,
    Unreachable,
    Unsupported,
    Unsure,
)
from j10ce.model.stored import Unreadable

UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
TOO_MANY: Final = 429
UNSUPPORTED: Final = 501
UNAVAILABLE: Final = 503
BUSY: Final = (TOO_MANY, UNAVAILABLE)  # nothing was done, and the same request may succeed soon
CUT_OFF: Final = 499  # the request ended before its answer: by its caller, or because the server stops


class Code(NamedTuple):
    """What an HTTP code says."""

    reason: str  # Kubernetes' word for it
    grpc: str  # the name of gRPC's code
    error: type[QosError] = QosError  # as a client raises it
    final: bool = False  # the same request would end the same way again


CODES: Final[Mapping[int, Code]] = {
    400: Code("BadRequest", "INVALID_ARGUMENT", Malformed, final=True),
    401: Code("Unauthorized", "UNAUTHENTICATED", Denied),
    403: Code("Forbidden", "PERMISSION_DENIED", Denied, final=True),
    404: Code("NotFound", "NOT_FOUND", NotFound),
    405: Code("MethodNotAllowed", "UNIMPLEMENTED"),
    406: Code("NotAcceptable", "INVALID_ARGUMENT"),
    408: Code("Timeout", "DEADLINE_EXCEEDED"),
    409: Code("Conflict", "ABORTED", Conflict),  # read again, then write again
    410: Code("Expired", "OUT_OF_RANGE", Compacted),  # list again, then watch again; etcd says it so, too
    413: Code("RequestEntityTooLarge", "RESOURCE_EXHAUSTED", final=True),
    415: Code("UnsupportedMediaType", "INVALID_ARGUMENT", final=True),
    422: Code("Invalid", "INVALID_ARGUMENT", Invalid, final=True),
    429: Code("TooManyRequests", "RESOURCE_EXHAUSTED"),
    500: Code("InternalError", "INTERNAL"),
    501: Code("Unsupported", "UNIMPLEMENTED"),  # what it needs stands in the message alone
    503: Code("ServiceUnavailable", "UNAVAILABLE", Unreachable),
    504: Code("Timeout", "DEADLINE_EXCEEDED", Unsure),  # it may have happened
}


class ErrorStatus(NamedTuple):
    """How a server of ours words an error; `reason` and `grpc` where it says more than its code does."""

    error: type[QosError]
    code: int
    exit_code: int = 1
    reason: str = ""
    grpc: str = ""


# The first row whose type fits counts, so a subclass stands above its base.
ANSWERS: Final = (
    ErrorStatus(Malformed, 400, 3),
    ErrorStatus(Invalid, 422, 3),
    ErrorStatus(NotFound, 404, 6),
    ErrorStatus(AlreadyExists, 409, 7, "AlreadyExists", "ALREADY_EXISTS"),
    ErrorStatus(Conflict, 409, 7),
    ErrorStatus(Busy, 409, 7, "Busy"),
    ErrorStatus(Compacted, 410),
    ErrorStatus(Denied, FORBIDDEN, 5),
    ErrorStatus(Unsupported, UNSUPPORTED),
    ErrorStatus(Unreachable, UNAVAILABLE, 4),
    ErrorStatus(Unsure, 504),
    ErrorStatus(Unreadable, 500),  # no time will mend it
    ErrorStatus(StoreError, UNAVAILABLE),
    ErrorStatus(QosError, 500),
)


class Refusal(QosError):
    """A refusal that exists in HTTP only; its reason is that of its code unless another is given."""

    def __init__(self, code: int, message: str, headers: Mapping[str, str] | None = None, *, reason: str = "") -> None:
        self.code, self.reason, self.headers = code, reason or reason_of(code), headers
        super().__init__(message)


def answer_to(error: QosError) -> ErrorStatus:
    """The row of an error, complete with reason and gRPC's name."""
    if isinstance(error, Refusal):
        code = CODES.get(error.code, CODES[500])
        return ErrorStatus(type(error), error.code, 1, error.reason, code.grpc)
    row = next(row for row in ANSWERS if isinstance(error, row.error))
    code = CODES[row.code]
    return row._replace(reason=row.reason or code.reason, grpc=row.grpc or code.grpc)


def error_of(code: int, reason: str = "") -> type[QosError]:
    """What a client raises for a code of 400 or more."""
    own = (row.error for row in ANSWERS if row.reason and (row.code, row.reason) == (code, reason))
    return next(own, CODES.get(code, CODES[500]).error)


def exit_code(kind: type[QosError]) -> int:
    """What a command ends with that fails so."""
    return next(row.exit_code for row in ANSWERS if issubclass(kind, row.error))


def is_final(code: int) -> bool:
    """Whether the same request would end the same way again."""
    return code in CODES and CODES[code].final


def reason_of(code: int) -> str:
    return CODES[code].reason if code in CODES else "Unknown"


class Cause(Struct, rename="camel"):
    field: str = ""
    message: str = ""


class Details(Struct, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, rename="camel"):
    """How Kubernetes, and every server of ours, words a failure."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None

    def findings(self) -> list[Finding]:
        """One for each cause; the message where the server names none."""
        causes = self.details.causes if self.details else ()
        return [Finding(cause.field, None, cause.message) for cause in causes] or [Finding("", None, self.message)]


def body_of(code: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """A Status as plain data, to be sent."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return body | ({"details": {"causes": list(causes)}} if causes else {})


def document_of(text: bytes, where: str) -> Any:
    """An answer that is no failure, decoded; raises Unreachable for what is no JSON: its sender is no API of ours."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise Unreachable(f"{where} answers what is no JSON: {e}") from None


def status_of(text: bytes) -> Status:
    """The Status of an answer; one without a code for what is none, such as the page of a proxy."""
    try:
        return msgspec.json.decode(text, type=Status)
    except msgspec.MsgspecError:
        return Status(message=text[:200].decode(errors="replace").strip())
