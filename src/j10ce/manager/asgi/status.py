"""Errors as Kubernetes spells them: an HTTP code and a `Status` object that says all that is wrong."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from j10ce.errors import FieldConflict, Finding, Invalid, QosError, cut, shown
from j10ce.http.status import UNAVAILABLE, Refusal, answer_to, body_of
from j10ce.model.kinds import API_VERSION


def answer(error: QosError) -> Response:
    body = status(error)
    headers = error.headers if isinstance(error, Refusal) else None
    if body["code"] == UNAVAILABLE:
        headers = {"retry-after": "1", **(headers or {})}
    return Response(msgspec.json.encode(body), body["code"], headers, "application/json")


def status(error: QosError) -> dict[str, Any]:
    """The Status object of a failure."""
    _, code, _, reason, _ = answer_to(error)
    return body_of(code, reason, str(error), _causes(error))


def _causes(error: QosError) -> list[dict[str, str]]:
    if isinstance(error, Invalid):
        rest = [Finding("", None, f"and {error.more} more")] if error.more else []
        return [_cause(finding) for finding in (*error.findings, *rest)]
    if isinstance(error, FieldConflict):
        others = [_conflict("", f"and {error.more} more")] if error.more else []
        owned = (_conflict(field, f'conflict with "{manager}" using {API_VERSION}') for manager, field in error.owners)
        return [*owned, *others]
    return []


def _conflict(field: str, message: str) -> dict[str, str]:
    return {"reason": "FieldManagerConflict", "field": field, "message": message}


def _cause(finding: Finding) -> dict[str, str]:
    value = "" if finding.value is None else f"{shown(finding.value)}: "
    return {"reason": "FieldValueInvalid", "field": cut(finding.path), "message": f"{value}{finding.advice}"}
