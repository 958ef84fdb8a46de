"""AdmissionReview in, AdmissionReview out: all findings at once, and open where we cannot judge."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import httpx2 as httpx
import msgspec
import pytest

from j10ce.errors import NotFound, Unavailable
from j10ce.manager.door_metrics import DoorMetrics
from j10ce.manager.doors import Doors
from j10ce.manager.metrics import Metrics
from j10ce.manager.webhook import PREFIX, WebhookDoor
from j10ce.manager.webhook_pods import PodRules
from j10ce.model.kinds import Meta, Object, QoSProfile, QoSProfileSpec, Selector, Tier
from j10ce.policy.profiles import builtin

LABEL = "j10ce.io/qos-profile"


class Objects:
    """An API server with these objects, or none that answers."""

    def __init__(self, *objects: Object, away: bool = False) -> None:
        self._objects, self._away = {(o.kind, o.metadata.name): o for o in objects}, away

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        if self._away:
            raise Unavailable("no API server")
        if (kind, name) not in self._objects:
            raise NotFound(name)
        return self._objects[kind, name]


async def nothing(scope: object, receive: object, send: object) -> None:
    raise NotFound("nothing else here")


class Hook:
    def __init__(
        self,
        *profiles: QoSProfile,
        labels: Mapping[str, str] | None = None,
        objects: Objects | None = None,
        reading: bool = False,
    ) -> None:
        known = None if reading else [*builtin(), *profiles]
        rules = PodRules(objects or Objects(), lambda _: labels or {}, lambda: known)
        self.told = Metrics()
        seen = DoorMetrics(self.told.registry)
        self._app = Doors(nothing, {PREFIX: WebhookDoor(rules, seen)}, seen.answered)  # type: ignore[arg-type]

    def ask(self, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
        answer = self.post(path, msgspec.json.encode(review))
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        assert told["response"]["uid"] == "u"
        assert (told["apiVersion"], told["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        return told["response"]  # type: ignore[no-any-return]

    def post(self, path: str, body: bytes) -> httpx.Response:
        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://x") as client:  # type: ignore[arg-type]
                return await client.post(f"/webhooks/{path}", content=body)

        return asyncio.run(send())


def pod(labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    meta = {"name": "web-0", **({"labels": dict(labels)} if labels else {})}
    request = {"kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "shop"}
    return {**request, "object": {"metadata": meta, "spec": {"containers": []}}, **more}


def policy(spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    kind = {"group": "j10ce.io", "version": "v1alpha1", "kind": "MinimalReservationPolicy"}
    meta = {"name": "db", "namespace": "shop", "finalizers": ["x/y"], "selfLink": "z"}
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": kind["kind"], "metadata": meta, "spec": spec}
    return {"kind": kind, "operation": "CREATE", "namespace": "shop", "name": "db", "object": made, **more}


def patched(response: Mapping[str, Any]) -> Any:
    assert response["patchType"] == "JSONPatch"
    return msgspec.json.decode(b64decode(response["patch"]))


def test_a_good_object_is_admitted() -> None:
    assert Hook().ask("validate", policy({"minimum": {"cpu": "1"}, "units": 2}))["allowed"]


def test_all_findings_of_a_bad_object_come_in_one_answer() -> None:
    bad = {"minimum": {"cpu": "10%"}, "units": 2, "ttl": "0s", "lending": {"within": "5s"}}
    response = Hook().ask("validate", policy(bad))
    assert not response["allowed"]
    assert response["status"]["code"] == 422
    told = response["status"]["message"]
    assert all(path in told for path in ("spec.minimum.cpu", "spec.ttl", "spec.lending.within"))
    assert len(response["status"]["details"]["causes"]) == 3


def test_an_old_mistake_stops_neither_a_deletion_nor_a_change_of_labels() -> None:
    bad = {"minimum": {"cpu": "10%"}, "units": 2}
    old = policy(bad)["object"]
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert Hook().ask("validate", policy(bad, operation="UPDATE", object=labelled, oldObject=old))["allowed"]
    ending = {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"units": 3}}
    assert Hook().ask("validate", policy(bad, operation="UPDATE", object=ending, oldObject=old))["allowed"]
    assert Hook().ask("validate", policy(bad, operation="DELETE", object=None, oldObject=old))["allowed"]


def test_a_pod_may_not_name_a_profile_that_is_not_there() -> None:
    response = Hook().ask("validate", pod({LABEL: "gold"}))
    assert not response["allowed"]
    assert "no QoSProfile has this name" in response["status"]["message"]


def test_a_pod_may_not_name_a_profile_that_its_namespace_is_not_allowed() -> None:
    response = Hook().ask("validate", pod({LABEL: "lse", "j10ce.io/ignore": "perhaps"}))
    told = response["status"]["message"]
    assert "namespace shop may not choose it" in told
    assert "not a truth value" in told
    assert Hook(labels={"j10ce.io/trusted": "true"}).ask("validate", pod({LABEL: "lse"}))["allowed"]


def test_display_names_are_names_too() -> None:
    assert Hook().ask("validate", pod({LABEL: "BE"}))["allowed"]


def test_a_profile_of_a_moment_ago_counts() -> None:
    gold = QoSProfile(metadata=Meta(name="gold"), spec=QoSProfileSpec(tier=Tier.STANDARD))
    assert Hook(objects=Objects(gold)).ask("validate", pod({LABEL: "gold"}))["allowed"]


def test_a_running_pod_is_not_judged_again_for_labels_that_it_has() -> None:
    request = pod({LABEL: "gone"}, operation="UPDATE")
    assert Hook().ask("validate", {**request, "oldObject": pod({LABEL: "gone"})["object"]})["allowed"]
    assert not Hook().ask("validate", {**request, "oldObject": pod({LABEL: "be"})["object"]})["allowed"]


def test_what_is_ignored_is_not_judged() -> None:
    assert Hook().ask("validate", pod({LABEL: "gold", "j10ce.io/ignore": "true"}))["allowed"]
    assert Hook(labels={"j10ce.io/ignore": "true"}).ask("validate", pod({LABEL: "gold"}))["allowed"]


@pytest.mark.parametrize("labels", [None, {"app": "web"}])
def test_a_pod_gets_the_profile_of_its_namespace(labels: Mapping[str, str] | None) -> None:
    steps = patched(Hook(labels={LABEL: "BestEffort"}).ask("mutate", pod(labels)))
    whole = {"op": "add", "path": "/metadata/labels", "value": {LABEL: "best-effort"}}
    one = {"op": "add", "path": "/metadata/labels/j10ce.io~1qos-profile", "value": "best-effort"}
    assert steps == [one if labels else whole]


def test_a_selector_goes_before_the_namespace() -> None:
    selector = Selector(match_labels={"app": "web"})
    gold = QoSProfile(metadata=Meta(name="gold"), spec=QoSProfileSpec(tier=Tier.STANDARD, selector=selector))
    steps = patched(Hook(gold, labels={LABEL: "be"}).ask("mutate", pod({"app": "web"})))
    assert steps[0]["value"] == "gold"


@pytest.mark.parametrize(
    ("labels", "own"),
    [
        ({LABEL: "be"}, {LABEL: "ls"}),
        ({LABEL: "lse"}, {}),
        ({LABEL: "gold"}, {}),
        ({LABEL: "be"}, {"j10ce.io/ignore": "true"}),
    ],
)
def test_a_pod_is_left_as_it_is(labels: Mapping[str, str], own: Mapping[str, str]) -> None:
    response = Hook(labels=labels).ask("mutate", pod(own))
    assert response == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("hook", [Hook(reading=True), Hook(objects=Objects(away=True))])
def test_what_cannot_be_judged_is_admitted_with_a_warning(hook: Hook) -> None:
    response = hook.ask("validate", pod({LABEL: "gold"}))
    assert response["allowed"]
    assert "did not look at it" in response["warnings"][0]


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[", b'{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","kind":{"kind":"Pod"}}}']
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    assert Hook().post("validate", body).status_code == 400


def test_there_are_two_webhooks() -> None:
    assert Hook().post("elsewhere", b"{}").status_code == 404


def test_what_becomes_of_objects_is_counted() -> None:
    hook = Hook(labels={LABEL: "ls"})
    hook.ask("mutate", pod())
    hook.ask("validate", pod({LABEL: "nobody"}))
    hook.ask("validate", pod({LABEL: "ls"}))
    hook.ask("validate", {"kind": {"group": "", "version": "v1", "kind": "Anything"}, "operation": "CREATE"})
    hook.post("validate", b"{}")
    told = bytes(hook.told.render().body).decode()
    for line in (
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="changed",webhook="mutate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="refused",webhook="validate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="admitted",webhook="validate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="other",verdict="admitted",webhook="validate"} 1.0',
        'j10ce_manager_door_requests_total{code="400",door="webhooks",verb="validate"} 1.0',
        'j10ce_manager_door_seconds_count{door="webhooks",verb="validate"} 4.0',
    ):
        assert f"\n{line}\n" in told, told
