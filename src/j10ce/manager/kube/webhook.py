"""The door that API servers knock at before they store something: POST /webhooks/{validate,mutate}.

All replicas answer, from what they hold in memory. Whatever we cannot judge is admitted with a warning: a manager in
trouble must not stop the cluster. Where an administrator wants it closed, it is refused instead.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import structlog
from msgspec import Struct, field
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from j10ce.errors import Finding, Invalid, NotFound, QosError, Unreachable, cut, shown
from j10ce.http.status import Refusal
from j10ce.manager.asgi.status import status
from j10ce.manager.kube.doors import Bodies, reply
from j10ce.manager.kube.koordinator.admission import KoordinatorRules
from j10ce.manager.kube.metrics import DoorMetrics, Verdict
from j10ce.model.bounds import MOST_DEPTH, Number, Word, too_deep
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import (
    GROUP,
    NAMESPACE_NAME_LABEL,
    PROFILE_LABEL,
    WORKLOAD_LABEL,
    MinimalReservationPolicy,
    Object,
    QoSProfile,
)
from j10ce.model.schema import convert
from j10ce.model.workload import Workload
from j10ce.policy.pods import ours, pod_findings, profile_for
from j10ce.policy.profiles import canonical
from j10ce.policy.reach import signature
from j10ce.policy.select import Labels
from j10ce.policy.validation.validate import validate

log = structlog.get_logger()
PREFIX: Final = "/webhooks/"
MOST_BYTES: Final = 8 << 20  # an object of 3 MiB, before and after
MOST_TOGETHER: Final = 64 << 20  # of all requests that are on their way: anyone may knock
DEEPEST: Final = 2 * MOST_DEPTH  # levels of a review: an object, and what is around it
MOST_PARTS: Final = 1 << 18  # of an object, any pod, and what it was before
DEADLINE_S: Final = 2.0  # API servers wait for three
API_VERSION: Final = "admission.k8s.io/v1"
UNJUDGED: Final = "j10ce-qos did not look at it"
MOST_WARNINGS: Final = 8  # of one answer; API servers show few and short ones


class GroupKind(Struct, frozen=True):
    kind: Word
    group: Word = ""


class User(Struct, frozen=True):
    username: Word = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    uid: Word
    kind: GroupKind
    operation: Word = ""
    namespace: Word = ""
    name: Word = ""
    object: Any = None
    old_object: Any = None
    user_info: User = User()


class Review(Struct, frozen=True, rename="camel"):
    request: AdmissionRequest
    api_version: Word = API_VERSION


class Scaled(Struct, frozen=True):
    """The spec of a Scale."""

    replicas: Number = 0


class Response(Struct, frozen=True, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool = field()
    status: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    patch_type: str = ""
    patch: str = ""


SCALE: Final = GroupKind("Scale", "autoscaling")
Judge = Callable[[AdmissionRequest], Awaitable[Response]]


class Objects(Protocol):
    """As much of a store as is asked for what is newer than our memory."""

    async def get(self, kind: str, namespace: str, name: str) -> Object: ...


class WebhookDoor:
    """`closed`: nothing gets in that was not judged. `foreign`: rules of another system, which count beside ours."""

    def __init__(
        self,
        pods: PodRules,
        objects: Objects,
        metrics: DoorMetrics,
        *,
        closed: bool = False,
        foreign: KoordinatorRules | None = None,
    ) -> None:
        self._pods, self._objects, self._metrics, self._closed = pods, objects, metrics, closed
        self._foreign = foreign
        self._bodies = Bodies(MOST_BYTES, MOST_TOGETHER)
        self._judges: Mapping[str, Judge] = {"validate": self._validate, "mutate": self._mutate}

    @property
    def verbs(self) -> Collection[str]:
        return self._judges.keys()

    def check(self, scope: Scope) -> None:
        """Anyone may ask: an answer tells nothing that its caller has not sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix(PREFIX)
        judge = self._judges.get(name)
        if judge is None:
            raise NotFound(f"there is no {cut(scope['path'])}; the webhooks are {', '.join(self._judges)}")
        text = await self._bodies.posted(scope, receive)
        request = _read(text)
        response = await self._judged(judge, request)
        self._metrics.reviewed(name, request.kind.kind, _verdict(response))
        review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
        await reply(send, msgspec.json.encode(review))

    async def _judged(self, judge: Judge, request: AdmissionRequest) -> Response:
        """In time, and never with an error of our own: those are logged."""
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

    def _unjudged(self, request: AdmissionRequest, why: str) -> Response:
        log.warning(
            "webhook.skip", kind=request.kind.kind, object=_where(request), error=why, admitted=not self._closed
        )
        if self._closed:
            refusal = Refusal(503, f"j10ce-qos could not judge it, and is closed: {why}; try again")
            return Response(request.uid, allowed=False, status=status(refusal))
        return Response(request.uid, allowed=True, warnings=(f"{UNJUDGED}: {why}",))

    async def _validate(self, request: AdmissionRequest) -> Response:
        """Raises Invalid with all findings."""
        if request.kind.group == GROUP and request.kind.kind in KINDS:
            _check_ours(request)
        elif request.kind == SCALE:
            await self._check_scaled(request)
        elif request.kind == GroupKind("Pod") and _changed(request, "metadata"):
            await self._pods.check(request.namespace, request.object, request.old_object)
            if self._foreign:
                odd = self._foreign.check_pod(request.namespace, request.object, request.old_object)
                return _warned(request, odd)
        elif request.kind == GroupKind("ConfigMap") and self._foreign:
            unheeded = self._foreign.check_config(request.namespace, request.name, request.object, request.old_object)
            return _warned(request, unheeded)
        return Response(request.uid, allowed=True)

    async def _check_scaled(self, request: AdmissionRequest) -> None:
        """The policy as it is, with other units: all that a Scale tells of it. Nothing else of ours can be scaled."""
        policy = await self._objects.get("MinimalReservationPolicy", request.namespace, request.name)
        if isinstance(policy, MinimalReservationPolicy) and _changed(request, "spec"):
            units = convert(request.object.get("spec", {}), Scaled, []).replicas
            findings = validate(replace(policy, spec=replace(policy.spec, units=units)))
            _refuse(findings, policy.kind, request.name)

    async def _mutate(self, request: AdmissionRequest) -> Response:
        if request.kind == GroupKind("Hold", GROUP) and request.object and _changed(request, "spec"):
            return self._patched(request, _signed(request))
        if request.kind != GroupKind("Pod") or request.operation != "CREATE":
            return Response(request.uid, allowed=True)
        if self._foreign:
            return await self._mutate_foreign(request, self._foreign)
        profile = await self._pods.profile(request.namespace, request.object)
        if not profile:
            return Response(request.uid, allowed=True)
        return self._patched(request, _labelled(request.object, PROFILE_LABEL, profile))

    async def _mutate_foreign(self, request: AdmissionRequest, foreign: KoordinatorRules) -> Response:
        """Their profiles first: what they make of a pod may say its class, and no default of ours counts then."""
        made = foreign.mutated(request.uid, request.namespace, request.object)
        steps = pod_difference(request.object, made.pod)
        says = foreign.speaks_of(_labels(made.pod))
        profile = "" if says else await self._pods.profile(request.namespace, made.pod)
        if profile:
            steps += _labelled(made.pod, PROFILE_LABEL, profile)
        warned = _warned(request, made.warnings)
        return replace(self._patched(request, steps), warnings=warned.warnings) if steps else warned

    def _patched(self, request: AdmissionRequest, steps: list[dict[str, Any]]) -> Response:
        patch = b64encode(msgspec.json.encode(steps)).decode()
        return Response(request.uid, allowed=True, patch_type="JSONPatch", patch=patch)


def _warned(request: AdmissionRequest, warnings: Sequence[str]) -> Response:
    return Response(request.uid, allowed=True, warnings=tuple(map(cut, warnings[:MOST_WARNINGS])))


def pod_difference(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """A JSON patch, field by field of metadata and spec: those are all that is changed of a pod."""
    steps = []
    for part in ("metadata", "spec"):
        old, new = before.get(part) or {}, after.get(part) or {}
        for name in sorted(old.keys() | new.keys()):
            path = f"/{part}/{name}"
            if name not in new:
                steps.append({"op": "remove", "path": path})
            elif name not in old or old[name] != new[name]:
                steps.append({"op": "add", "path": path, "value": new[name]})
    return steps


def _verdict(response: Response) -> Verdict:
    if not response.allowed:
        return "refused"
    if any(warning.startswith(UNJUDGED) for warning in response.warnings):
        return "skipped"
    return "changed" if response.patch else "admitted"


def _read(text: bytes) -> AdmissionRequest:
    if text.count(b"[") + text.count(b"{") + text.count(b",") > MOST_PARTS:  # before anything is made of them
        raise Refusal(400, f"not an AdmissionReview: more than {MOST_PARTS} values")
    if too_deep(text, DEEPEST):
        raise Refusal(400, f"not an AdmissionReview: nested beyond {DEEPEST} levels")
    try:
        review = msgspec.json.decode(text, type=Review)
    except msgspec.MsgspecError as e:
        raise Refusal(400, f"not an AdmissionReview: {cut(str(e))}") from None
    if review.api_version != API_VERSION:
        raise Refusal(400, f"apiVersion {shown(review.api_version)} is not known; use {API_VERSION}")
    return review.request


def _check_ours(request: AdmissionRequest) -> None:
    """What is being deleted, and what does not touch the wish, goes through: old mistakes must not stop it."""
    deleting = bool(request.object and request.object.get("metadata", {}).get("deletionTimestamp"))
    if not request.object or deleting or not _changed(request, "spec", "data", "revision"):
        return
    if request.kind.kind == "PolicyRevision" and request.old_object:
        finding = Finding("data", None, "history is not rewritten", "apply the policy, or j10ce-qos rollout undo")
        raise Invalid([finding], f"PolicyRevision {request.name}")
    obj = convert({**request.object, "status": {}}, KINDS[request.kind.kind].struct, [])
    _refuse(validate(obj), request.kind.kind, request.name)  # type: ignore[arg-type]


def _refuse(findings: list[Finding], kind: str, name: str) -> None:
    if findings:
        raise Invalid(findings, f"{kind} {name}")


def _changed(request: AdmissionRequest, *parts: str) -> bool:
    if not request.old_object:
        return True
    return any(request.object.get(part) != request.old_object.get(part) for part in parts)


def _labelled(pod: Any, key: str, value: str) -> list[dict[str, Any]]:
    if not pod.get("metadata", {}).get("labels"):
        return [{"op": "add", "path": "/metadata/labels", "value": {key: value}}]
    return [{"op": "add", "path": "/metadata/labels/" + key.replace("~", "~0").replace("/", "~1"), "value": value}]


def _signed(request: AdmissionRequest) -> list[dict[str, Any]]:
    """Whoever last changed a hold's wish is who made it: what the object says of that is not believed."""
    given = str(request.object.get("spec", {}).get("who", ""))
    return [{"op": "add", "path": "/spec/who", "value": signature(request.user_info.username, given)}]


def _where(request: AdmissionRequest) -> str:
    return "/".join(filter(None, (request.namespace, request.name)))


class PodRules:
    """Pods are judged by the profiles and namespaces in memory, or by the API server's where those are newer.

    `namespaces`: the labels of one that is known, else None. `profiles`: None while they are being read."""

    def __init__(
        self,
        objects: Objects,
        namespaces: Callable[[str], Labels | None],
        profiles: Callable[[], list[QoSProfile] | None],
    ) -> None:
        self._objects, self._namespaces, self._profiles = objects, namespaces, profiles

    async def check(self, namespace: str, pod: Any, old: Any) -> None:
        """Raises Invalid with all findings. Labels that a pod has already are not looked at again."""
        if old and ours(_labels(pod)) == ours(_labels(old)):
            return
        known = await self._workload(namespace, pod)
        if findings := pod_findings(known, await self._known(known)):
            raise Invalid(findings, f"Pod {namespace}/{known.name}")

    async def profile(self, namespace: str, pod: Any) -> str:
        """What to label it with; empty: nothing."""
        known = await self._workload(namespace, pod)
        return profile_for(known, await self._known(known))

    async def _workload(self, namespace: str, pod: Any) -> Workload:
        meta: Mapping[str, Any] = pod.get("metadata", {})
        has = self._namespaces(namespace)
        if has is None:
            has = (await self._objects.get("Namespace", "", namespace)).metadata.labels
        name = meta.get("name") or meta.get("generateName", "")
        labels = {**_labels(pod), WORKLOAD_LABEL: name}
        return Workload(namespace, name, labels, {NAMESPACE_NAME_LABEL: namespace, **has})

    async def _known(self, pod: Workload) -> list[QoSProfile]:
        profiles = self._profiles()
        if profiles is None:
            raise Unreachable("profiles are still being read")
        for asked in (pod.labels.get(PROFILE_LABEL), pod.namespace_labels.get(PROFILE_LABEL)):
            name = canonical(asked or "")
            if name and not any(p.metadata.name == name for p in profiles):
                profiles = [*profiles, *await self._newer(name)]
        return profiles

    async def _newer(self, name: str) -> list[QoSProfile]:
        """One that was made a moment ago."""
        try:
            profile = await self._objects.get("QoSProfile", "", name)
        except NotFound:
            return []
        return [profile] if isinstance(profile, QoSProfile) else []


def _labels(pod: Any) -> dict[str, str]:
    return pod.get("metadata", {}).get("labels") or {}
