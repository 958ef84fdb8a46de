"""Errors as Kubernetes spells them: an HTTP code and a `Status` object that says all that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from j10ce.errors import (
    Compacted,
    Conflict,
    Denied,
    FieldConflict,
    Finding,
    Invalid,
    Malformed,
    NotFound,
    QosError,
    StoreError,
    Unreachable,
    Unsure,
    cut,
    shown,
)
from j10ce.model.kinds import API_VERSION
from j10ce.model.stored import Unreadable

UNAVAILABLE: Final = 503  # come back soon
CUT_OFF: Final = 499  # the request ended before its answer: by its caller, or because we stop


class Refusal(QosError):
    """A refusal that exists in HTTP only."""

    def __init__(self, code: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.code, self.reason, self.headers = code, reason, headers
        super().__init__(message)


class AlreadyExists(Conflict):
    """A create met an object of its name."""


# The first row whose type fits counts, so a subclass stands above its base.
CODES: Final[tuple[tuple[type[QosError], int, str], ...]] = (
    (Malformed, 400, "BadRequest"),
    (Invalid, 422, "Invalid"),
    (NotFound, 404, "NotFound"),
    (AlreadyExists, 409, "AlreadyExists"),
    (Conflict, 409, "Conflict"),
    (Compacted, 410, "Expired"),
    (Denied, 403, "Forbidden"),
    (Unreachable, 503, "ServiceUnavailable"),
    (Unsure, 504, "Timeout"),
    (Unreadable, 500, "InternalError"),  # no time will mend it
    (StoreError, 503, "ServiceUnavailable"),
    (QosError, 500, "InternalError"),
)


def answer(error: QosError) -> Response:
    body = status(error)
    headers = error.headers if isinstance(error, Refusal) else None
    if body["code"] == UNAVAILABLE:
        headers = {"retry-after": "1", **(headers or {})}
    return Response(msgspec.json.encode(body), body["code"], headers, "application/json")


def status(error: QosError) -> dict[str, Any]:
    """The Status object of a failure."""
    if isinstance(error, Refusal):
        code, reason = error.code, error.reason
    else:
        code, reason = next((code, reason) for kind, code, reason in CODES if isinstance(error, kind))
    told: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": reason,
        "code": code,
    }
    if isinstance(error, Invalid):
        rest = [Finding("", None, f"and {error.more} more")] if error.more else []
        told["details"] = {"causes": [_cause(finding) for finding in (*error.findings, *rest)]}
    if isinstance(error, FieldConflict):
        others = [_conflict("", f"and {error.more} more")] if error.more else []
        told["details"] = {"causes": [*(_owned(*owner) for owner in error.owners), *others]}
    return told


def _owned(manager: str, field: str) -> dict[str, str]:
    return _conflict(field, f'conflict with "{manager}" using {API_VERSION}')


def _conflict(field: str, message: str) -> dict[str, str]:
    return {"reason": "FieldManagerConflict", "field": field, "message": message}


def _cause(finding: Finding) -> dict[str, str]:
    value = "" if finding.value is None else f"{shown(finding.value)}: "
    return {"reason": "FieldValueInvalid", "field": cut(finding.path), "message": f"{value}{finding.advice}"}
