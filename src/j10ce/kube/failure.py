"""What an API server's refusal means to us, where it differs from what our own servers mean by the same code."""

from __future__ import annotations

from typing import Final

from j10ce.errors import Compacted, Denied, Invalid, Later, NotFound, NotServed, QosError, StoreError, Unsure
from j10ce.http.status import TOO_MANY, UNAUTHORIZED, UNAVAILABLE, Details, Status, error_of

RETRY_S: Final = 1.0  # where the server does not say


def failure(code: int, status: Status, what: str, who: str, retry_after: str = "") -> QosError:
    """`what` was tried: `GET /apis/…`. `who`: on whose behalf, as far as we know."""
    text = f"{what}: {status.message or f'HTTP {code}'}"
    details, kind = status.details or Details(), error_of(code)
    # A 503 with a Status is the API server's own word: it says so before it touches its store.
    if code == TOO_MANY or (code == UNAVAILABLE and status.code):
        return Later(text, float(retry_after) if retry_after.isdecimal() else details.retry_after_seconds or RETRY_S)
    if code >= 500:
        return Unsure(text)
    if kind is NotFound and not details.name:
        return NotServed(f"{text}: this kind is not served; install its CRD: kubectl apply -k deploy/")
    if kind is Compacted:
        return Compacted(f"{text}: list again")
    if kind is Invalid:
        return Invalid(status.findings(), details.name or "object")
    if kind is Denied:
        return Denied(f"the API server {'does not know' if code == UNAUTHORIZED else 'refuses'} {who}: {text}")
    return kind(text) if issubclass(kind, StoreError) else StoreError(text)
