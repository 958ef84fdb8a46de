"""The door that API servers knock at before they store something: POST /webhooks/{validate,mutate}.

All replicas answer, from what they hold in memory. Whatever we cannot judge is admitted with a warning: a manager in
trouble must not stop the cluster.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct, field
from starlette.types import Receive, Scope, Send

from j10ce.errors import Invalid, NotFound, QosError
from j10ce.manager.door_metrics import DoorMetrics, Verdict
from j10ce.manager.doors import posted, reply
from j10ce.manager.failure import Refusal, status
from j10ce.manager.webhook_pods import PodRules
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import GROUP, PROFILE_LABEL
from j10ce.model.schema import convert
from j10ce.policy.validate import validate

log = structlog.get_logger()
PREFIX: Final = "/webhooks/"
MOST_BYTES: Final = 8 << 20  # an object of 3 MiB, before and after
DEADLINE_S: Final = 3.0  # API servers wait for five
API_VERSION: Final = "admission.k8s.io/v1"


class GroupKind(Struct, frozen=True):
    kind: str
    group: str = ""


class Request(Struct, frozen=True, rename="camel"):
    uid: str
    kind: GroupKind
    operation: str = ""
    namespace: str = ""
    name: str = ""
    object: Any = None
    old_object: Any = None


class Review(Struct, frozen=True, rename="camel"):
    request: Request
    api_version: str = API_VERSION


class Response(Struct, frozen=True, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool = field()
    status: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    patch_type: str = ""
    patch: str = ""


Judge = Callable[[Request], Awaitable[Response]]


class WebhookDoor:
    def __init__(self, pods: PodRules, metrics: DoorMetrics) -> None:
        self._pods, self._metrics = pods, metrics
        self._judges: Mapping[str, Judge] = {"validate": self._validate, "mutate": self._mutate}

    @property
    def verbs(self) -> Collection[str]:
        return self._judges.keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix(PREFIX)
        judge = self._judges.get(name)
        if judge is None:
            raise NotFound(f"there is no {scope['path']}; the webhooks are {', '.join(self._judges)}")
        text = await posted(scope, receive, most=MOST_BYTES)
        request = _read(text)
        response = await self._judged(judge, request)
        self._metrics.reviewed(name, request.kind.kind, _verdict(response))
        told = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
        await reply(send, msgspec.json.encode(told))

    async def _judged(self, judge: Judge, request: Request) -> Response:
        """In time, and never with an error of our own: those are told, and the object is admitted."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await judge(request)
        except Invalid as e:
            log.info("webhook.refuse", kind=request.kind.kind, object=_where(request), error=str(e))
            return Response(request.uid, allowed=False, status=status(e))
        except (QosError, TimeoutError) as e:
            return self._unjudged(request, str(e) or f"no decision within {DEADLINE_S:g} s")
        except Exception as e:
            log.exception("webhook.fail", kind=request.kind.kind, object=_where(request))
            return self._unjudged(request, f"internal error: {type(e).__name__}")

    def _unjudged(self, request: Request, why: str) -> Response:
        log.warning("webhook.skip", kind=request.kind.kind, object=_where(request), error=why)
        return Response(request.uid, allowed=True, warnings=(f"j10ce-qos did not look at it: {why}",))

    async def _validate(self, request: Request) -> Response:
        """Raises Invalid with all findings."""
        if request.kind.group == GROUP and request.kind.kind in KINDS:
            _check_ours(request)
        elif request.kind == GroupKind("Pod") and _changed(request, "metadata"):
            await self._pods.check(request.namespace, request.object, request.old_object)
        return Response(request.uid, allowed=True)

    async def _mutate(self, request: Request) -> Response:
        if request.kind != GroupKind("Pod") or request.operation != "CREATE":
            return Response(request.uid, allowed=True)
        profile = await self._pods.profile(request.namespace, request.object)
        if not profile:
            return Response(request.uid, allowed=True)
        patch = b64encode(msgspec.json.encode(_labelled(request.object, PROFILE_LABEL, profile))).decode()
        return Response(request.uid, allowed=True, patch_type="JSONPatch", patch=patch)


def _verdict(response: Response) -> Verdict:
    if not response.allowed:
        return "refused"
    if response.warnings:
        return "skipped"
    return "changed" if response.patch else "admitted"


def _read(text: bytes) -> Request:
    try:
        review = msgspec.json.decode(text, type=Review)
    except msgspec.MsgspecError as e:
        raise Refusal(400, "BadRequest", f"not an AdmissionReview: {e}") from None
    if review.api_version != API_VERSION:
        raise Refusal(400, "BadRequest", f"apiVersion {review.api_version!r} is not known; use {API_VERSION}")
    return review.request


def _check_ours(request: Request) -> None:
    """What is being deleted, and what does not touch the wish, goes through: old mistakes must not stop it."""
    deleting = bool(request.object and request.object.get("metadata", {}).get("deletionTimestamp"))
    if not request.object or deleting or not _changed(request, "spec", "data", "revision"):
        return
    obj = convert({**request.object, "status": {}}, KINDS[request.kind.kind].struct, [])
    if findings := validate(obj):  # type: ignore[arg-type]
        raise Invalid(findings, f"{request.kind.kind} {request.name}")


def _changed(request: Request, *parts: str) -> bool:
    if not request.old_object:
        return True
    return any(request.object.get(part) != request.old_object.get(part) for part in parts)


def _labelled(pod: Any, key: str, value: str) -> list[dict[str, Any]]:
    if not pod.get("metadata", {}).get("labels"):
        return [{"op": "add", "path": "/metadata/labels", "value": {key: value}}]
    return [{"op": "add", "path": "/metadata/labels/" + key.replace("~", "~0").replace("/", "~1"), "value": value}]


def _where(request: Request) -> str:
    return "/".join(filter(None, (request.namespace, request.name)))
