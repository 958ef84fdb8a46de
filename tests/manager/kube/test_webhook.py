"""AdmissionReview in, AdmissionReview out: all findings at once, and open where we cannot judge."""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx2 as httpx
import msgspec
import pytest

from j10ce.errors import NotFound, Unavailable
from j10ce.http.status import Refusal
from j10ce.manager.kube import webhook
from j10ce.manager.kube.doors import Bodies, Doors
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.kube.webhook import MOST_BYTES, MOST_TOGETHER, PREFIX, PodRules, WebhookDoor
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kinds import Meta, Object, QoSProfile, QoSProfileSpec, Selector, Tier
from j10ce.policy.profiles import builtin
from j10ce.testing.build import reservation

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
        closed: bool = False,
    ) -> None:
        known = None if reading else [*builtin(), *profiles]
        stored = objects or Objects()
        rules = PodRules(stored, lambda _: labels or {}, lambda: known)
        self.metrics = Metrics()
        seen = DoorMetrics(self.metrics.registry)
        door = WebhookDoor(rules, stored, seen, closed=closed)
        self._app = Doors(nothing, {PREFIX: door}, seen.answered, time.monotonic)  # type: ignore[arg-type]

    def ask(self, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
        answer = self.post(path, msgspec.json.encode(review))
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        assert reply["response"]["uid"] == "u"
        assert (reply["apiVersion"], reply["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        return reply["response"]  # type: ignore[no-any-return]

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
    message = response["status"]["message"]
    assert all(path in message for path in ("spec.minimum.cpu", "spec.ttl", "spec.lending.within"))
    assert len(response["status"]["details"]["causes"]) == 3


def test_an_old_mistake_stops_neither_a_deletion_nor_a_change_of_labels() -> None:
    bad = {"minimum": {"cpu": "10%"}, "units": 2}
    old = policy(bad)["object"]
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert Hook().ask("validate", policy(bad, operation="UPDATE", object=labelled, oldObject=old))["allowed"]
    ending = {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"units": 3}}
    assert Hook().ask("validate", policy(bad, operation="UPDATE", object=ending, oldObject=old))["allowed"]
    assert Hook().ask("validate", policy(bad, operation="DELETE", object=None, oldObject=old))["allowed"]


def scaled(units: int, old: int = 0) -> dict[str, Any]:
    """As `kubectl scale` asks for it."""
    kind = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    made, was = ({"metadata": {"name": "db", "namespace": "shop"}, "spec": {"replicas": n}} for n in (units, old))
    asked = {"operation": "UPDATE", "namespace": "shop", "name": "db", "object": made, "oldObject": was}
    return {"kind": kind, **asked}


def test_units_that_a_policy_cannot_have_are_refused_however_they_are_asked_for() -> None:
    share = Hook(objects=Objects(reservation("db", namespace="shop", cpu="10%")))
    response = share.ask("validate", scaled(2))
    assert not response["allowed"]
    assert "spec.minimum.cpu" in response["status"]["message"]
    assert share.ask("validate", scaled(2, old=2))["allowed"], "an old mistake"
    amount = Hook(objects=Objects(reservation("db", namespace="shop", cpu="1")))
    assert amount.ask("validate", scaled(2))["allowed"]
    assert not amount.ask("validate", scaled(-1))["allowed"]


def test_units_are_not_judged_without_the_policy() -> None:
    assert Hook(objects=Objects(away=True)).ask("validate", scaled(2))["warnings"]
    assert not Hook(objects=Objects(away=True), closed=True).ask("validate", scaled(2))["allowed"]


def test_a_pod_may_not_name_a_profile_that_is_not_there() -> None:
    response = Hook().ask("validate", pod({LABEL: "gold"}))
    assert not response["allowed"]
    assert "no QoSProfile has this name" in response["status"]["message"]


def test_a_pod_may_not_name_a_profile_that_its_namespace_is_not_allowed() -> None:
    response = Hook().ask("validate", pod({LABEL: "lse", "j10ce.io/ignore": "perhaps"}))
    message = response["status"]["message"]
    assert "namespace shop may not choose it" in message
    assert "not a truth value" in message
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
    response = Hook(gold, labels={LABEL: "be"}).ask("mutate", pod({"app": "web"}))
    assert response == {"uid": "u", "allowed": True}, "no label freezes what a selector chooses"


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


class Silent(Objects):
    """An API server that never answers."""

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@pytest.mark.parametrize("path", ["validate", "mutate"])
@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(Hook(reading=True, closed=True), id="it has just started"),
        pytest.param(Hook(objects=Objects(away=True), closed=True), id="the API server is away"),
        pytest.param(Hook(objects=Silent(), closed=True), id="time is over"),
    ],
)
def test_a_closed_door_refuses_what_it_could_not_judge(hook: Hook, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "DEADLINE_S", 0.01)
    response = hook.ask(path, pod({LABEL: "gold"}))
    assert not response["allowed"]
    assert response["status"]["code"] == 503
    assert "could not judge it" in response["status"]["message"]
    assert "warnings" not in response


def test_a_closed_door_admits_what_it_has_judged() -> None:
    assert Hook(closed=True).ask("validate", pod({LABEL: "be"}))["allowed"]


def hold(target: str, user: str, **spec: Any) -> dict[str, Any]:
    kind = {"group": "j10ce.io", "version": "v1alpha1", "kind": "Hold"}
    wish = {"target": target, "knobs": ["cpu.max"], "expires": "2026-01-01T00:00:00Z", "why": "test", **spec}
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold", "metadata": {"name": "h", "namespace": "shop"}}
    request = {"kind": kind, "operation": "CREATE", "namespace": "shop", "name": "h", "userInfo": {"username": user}}
    return {**request, "object": {**made, "spec": wish}}


def test_a_hold_on_what_runs_elsewhere_is_refused() -> None:
    assert Hook().ask("validate", hold("workload/shop/web", "alice"))["allowed"]
    for target in ("workload/bank/db", "node", "group/kubepods"):
        response = Hook().ask("validate", hold(target, "alice"))
        assert "beyond the reach of namespace shop" in response["status"]["message"]


AGENT = "system:serviceaccount:j10ce-system:j10ce-agent"


@pytest.mark.parametrize(("user", "who"), [("alice", "alice"), (AGENT, f"root ({AGENT})")])
def test_who_made_a_hold_is_what_the_api_server_says(user: str, who: str) -> None:
    patch = patched(Hook().ask("mutate", hold("workload/shop/web", user, who="root")))
    assert patch == [{"op": "add", "path": "/spec/who", "value": who}]


def test_a_change_of_a_holds_labels_changes_nobodys_name() -> None:
    request = hold("workload/shop/web", "bob", who="alice")
    response = Hook().ask("mutate", {**request, "operation": "UPDATE", "oldObject": request["object"]})
    assert response == {"uid": "u", "allowed": True}


def test_history_is_not_rewritten() -> None:
    kind = {"group": "j10ce.io", "version": "v1alpha1", "kind": "PolicyRevision"}
    kept = {"metadata": {"name": "db-1", "namespace": "shop"}, "revision": 1, "data": {"minimum": {"cpu": "1"}}}
    request = {"kind": kind, "operation": "UPDATE", "namespace": "shop", "name": "db-1", "oldObject": kept}
    for edit in ({"data": {"minimum": {"cpu": "9"}}}, {"revision": 2}):
        response = Hook().ask("validate", {**request, "object": {**kept, **edit}})
        assert "history is not rewritten" in response["status"]["message"]
    labelled = {**kept, "metadata": {**kept["metadata"], "labels": {"a": "b"}}}  # type: ignore[dict-item]
    assert Hook().ask("validate", {**request, "object": labelled})["allowed"]


OPENED = b'{"request":{"uid":"u","kind":{"kind":"Pod"},"object":'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[",
        b'{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","kind":{"kind":"Pod"}}}',
        pytest.param(OPENED + b"[" * 3_000_000, id="brackets without end"),
        pytest.param(OPENED + b"[" * 900 + b"]" * 900 + b"}}", id="deeper than any object"),
        pytest.param(OPENED + b"[" + b"[]," * 300_000 + b"[]]}}", id="more values than any object has"),
    ],
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    assert Hook().post("validate", body).status_code == 400


def test_a_long_name_of_a_user_is_not_repeated() -> None:
    answer = Hook().post(
        "mutate", msgspec.json.encode({"request": {"uid": "u", **hold("workload/shop/web", "u" * 3_000_000)}})
    )
    assert (answer.status_code, len(answer.content) < 1_000) == (400, True)


def test_there_are_two_webhooks() -> None:
    assert Hook().post("elsewhere", b"{}").status_code == 404


def test_what_becomes_of_objects_is_counted() -> None:
    hook = Hook(labels={LABEL: "ls"})
    hook.ask("mutate", pod())
    hook.ask("validate", pod({LABEL: "nobody"}))
    hook.ask("validate", pod({LABEL: "ls"}))
    hook.ask("validate", {"kind": {"group": "", "version": "v1", "kind": "Anything"}, "operation": "CREATE"})
    hook.post("validate", b"{}")
    text = bytes(hook.metrics.render().body).decode()
    for line in (
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="changed",webhook="mutate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="refused",webhook="validate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="Pod",verdict="admitted",webhook="validate"} 1.0',
        'j10ce_manager_webhook_reviews_total{kind="other",verdict="admitted",webhook="validate"} 1.0',
        'j10ce_manager_door_requests_total{code="400",door="webhooks",verb="validate"} 1.0',
        'j10ce_manager_door_seconds_count{door="webhooks",verb="validate"} 4.0',
    ):
        assert f"\n{line}\n" in text, text


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"uid": "y" * 1_000_000}, id="uid"),
        pytest.param({"name": "y" * 1_000_000}, id="name"),
        pytest.param({"namespace": "y" * 1_000_000}, id="namespace"),
        pytest.param({"kind": {"group": "", "kind": "y" * 1_000_000}}, id="kind"),
    ],
)
def test_long_words_of_a_stranger_are_neither_taken_nor_repeated(request_: dict[str, Any]) -> None:
    review = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", **pod(), **request_}}
    answer = Hook().post("validate", msgspec.json.encode(review))
    assert (answer.status_code, len(answer.content) < 1_000) == (400, True)


def test_an_api_version_is_repeated_by_its_first_characters() -> None:
    review = {"apiVersion": "y" * 1_000_000, "request": {"uid": "u", **pod()}}
    answer = Hook().post("validate", msgspec.json.encode(review))
    assert (answer.status_code, len(answer.content) < 1_000) == (400, True)


async def test_bodies_that_never_end_leave_room_for_others() -> None:
    """All together have 64 MiB, and what is small finds room beyond."""
    bodies, post = Bodies(MOST_BYTES, MOST_TOGETHER), {"method": "POST"}
    begun = asyncio.Semaphore(0)

    async def unfinished() -> None:
        sent = iter([{"type": "http.request", "body": bytes(7 << 20), "more_body": True}])

        async def receive() -> Any:
            if message := next(sent, None):
                return message
            begun.release()
            return await asyncio.Event().wait()

        await bodies.posted(post, receive)

    async def whole(size: int) -> Any:
        return {"type": "http.request", "body": bytes(size)}

    async with asyncio.TaskGroup() as group:
        slow = [group.create_task(unfinished()) for _ in range(9)]
        for _ in slow:
            await begun.acquire()
        with pytest.raises(Refusal, match="too much is being sent"):
            await bodies.posted(post, partial(whole, 2 << 20))
        assert await bodies.posted(post, partial(whole, 60_000)) == bytes(60_000)
        for task in slow:
            task.cancel()
    assert await bodies.posted(post, partial(whole, 7 << 20)) == bytes(7 << 20)
