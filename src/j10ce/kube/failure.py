"""What an API server's refusal means to us."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from j10ce.errors import (
    Compacted,
    Conflict,
    Denied,
    Finding,
    Invalid,
    NotFound,
    QosError,
    StoreError,
    Unavailable,
    Unsure,
)

GONE: Final = 410
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503
RETRY_S: Final = 1.0  # where the server does not say


class Cause(Struct, rename="camel"):
    field: str = ""
    message: str = ""


class Details(Struct, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, rename="camel"):
    """How Kubernetes words a failure."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class Later(Unavailable):
    """The server asks to come back; nothing was changed."""

    def __init__(self, told: str, after_s: float) -> None:
        super().__init__(told)
        self.after_s = after_s


def status_of(text: bytes) -> Status:
    """A Status without a code for what is none, such as the page of a proxy."""
    try:
        return msgspec.json.decode(text, type=Status)
    except msgspec.MsgspecError:
        return Status(message=text[:200].decode(errors="replace").strip())


def failure(code: int, status: Status, what: str, who: str, retry_after: str = "") -> QosError:
    """`what` was tried: `GET /apis/…`. `who`: on whose behalf, as far as we know."""
    told = f"{what}: {status.message or f'HTTP {code}'}"
    details = status.details or Details()
    match code:
        case 401:
            return Denied(f"the API server does not know {who}: {told}")
        case 403:
            return Denied(f"the API server refuses {who}: {told}")
        case 404 if details.name:
            return NotFound(told)
        case 404:
            return Unavailable(f"{told}: this kind is not served; install its CRD: kubectl apply -k deploy/")
        case 409:
            return Conflict(told)
        case 410:
            return Compacted(f"{told}: list again")
        case 422:
            return Invalid(_findings(details, status.message), details.name or "object")
        case 429:
            return Later(told, _seconds(retry_after, details))
        case 503 if status.code:  # the API server's own word: it says so before it touches its store
            return Later(told, _seconds(retry_after, details))
        case _ if code >= 500:
            return Unsure(told)
        case _:
            return StoreError(told)


def _findings(details: Details, message: str) -> list[Finding]:
    return [Finding(cause.field, None, cause.message) for cause in details.causes] or [Finding("", None, message)]


def _seconds(header: str, details: Details) -> float:
    return float(header) if header.isdecimal() else details.retry_after_seconds or RETRY_S
