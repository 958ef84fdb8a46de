"""The client of an API server on a bad day: what is tried again, what is not, and what is said in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from j10ce.errors import Compacted, Conflict, Denied, Invalid, NotFound, QosError, StoreError, Unavailable, Unsure
from j10ce.kube.access import KubeAccess
from j10ce.kube.client import KubeClient
from j10ce.kube.transport import KubeHttp, KubeRequest
from tests.kube.client.api_server import Reply, serving, status

PATH = "/apis/j10ce.io/v1alpha1/nodeqoses/n"
OK = Reply(200, {"metadata": {"name": "n"}})
Call = Callable[[KubeClient], Awaitable[object]]


async def get(client: KubeClient) -> object:
    return await client.get(PATH)


async def create(client: KubeClient) -> object:
    return await client.create("/apis/j10ce.io/v1alpha1/nodeqoses", {"metadata": {"name": "n"}})


async def change(client: KubeClient) -> object:
    return await client.patch(PATH, [], "json", repeatable=True)


async def overwrite(client: KubeClient) -> object:
    return await client.patch(PATH, [], "json")


async def delete(client: KubeClient) -> object:
    return await client.delete(PATH, uid="u", revision="7")


BUSY = Reply(429, status(429, "TooManyRequests", "slow down"), retry_after="0")
STARTING = Reply(503, status(503, "ServiceUnavailable", "starting", retryAfterSeconds=0), retry_after="0")
BROKEN = Reply(500, status(500, "InternalError", "etcdserver: request timed out"))
PROXY = Reply(503, "no healthy upstream")


@pytest.mark.parametrize("call", [get, create, change, overwrite, delete])
@pytest.mark.parametrize("refusal", [BUSY, STARTING], ids=["busy", "starting"])
async def test_what_was_not_carried_out_is_tried_again(call: Call, refusal: Reply) -> None:
    async with serving(refusal, refusal, OK) as api:
        await call(api.client())
        assert len(api.heard) == 3


@pytest.mark.parametrize("call", [get, change, delete])
@pytest.mark.parametrize("trouble", [BROKEN, PROXY, "hang up"], ids=["broken", "proxy", "hang up"])
async def test_what_may_be_carried_out_twice_is_tried_again(call: Call, trouble: Reply) -> None:
    async with serving(trouble, OK) as api:
        await call(api.client())


@pytest.mark.parametrize("call", [create, overwrite])
@pytest.mark.parametrize("trouble", [BROKEN, PROXY, "hang up"], ids=["broken", "proxy", "hang up"])
async def test_what_may_have_happened_and_must_not_twice_is_reported(call: Call, trouble: Reply) -> None:
    async with serving(trouble) as api:
        with pytest.raises(Unsure, match="read it again"):
            await call(api.client())


@pytest.mark.parametrize("call", [change, delete])
@pytest.mark.parametrize("answer", [409, 404])
async def test_a_conflict_may_be_with_an_attempt_of_our_own_that_was_not_answered(call: Call, answer: int) -> None:
    async with serving("hang up", Reply(answer, status(answer, name="n"))) as api:
        with pytest.raises(Unsure):
            await call(api.client())


async def test_patience_ends() -> None:
    async with serving(BUSY) as api:
        with pytest.raises(Unavailable, match="slow down"):
            await get(api.client(patience_s=0))
    async with serving(BROKEN) as api:
        with pytest.raises(Unsure, match="timed out"):
            await change(api.client(patience_s=0))


async def test_a_patient_client_waits_for_a_slow_answer_instead_of_doubting_what_it_asked() -> None:
    """Beside other work a server may take longer than users wait for."""
    request = KubeRequest("POST", PATH, body=b"{}", attempt_s=0.1, repeatable=False)
    async with serving(OK, OK) as api, asyncio.TaskGroup() as group:
        access = KubeAccess(f"http://{api.address}", "the tester")
        hasty, patient = KubeHttp(access, patience_s=0.1), KubeHttp(access, patience_s=60)
        api.answering.clear()
        answered = group.create_task(patient.ask(request))
        with pytest.raises(Unsure, match="read it again"):
            await hasty.ask(request)
        api.answering.set()
        assert json.loads(await answered) == OK.body
        await hasty.close()
        await patient.close()


async def test_a_server_that_is_not_there_is_named() -> None:
    asking = KubeClient(KubeAccess("http://127.0.0.1:1", "the tester"), patience_s=0)
    for call in (get, create):
        with pytest.raises(Unavailable, match=r"http://127.0.0.1:1 does not answer"):
            await call(asking)
    await asking.close()


async def test_a_server_that_asks_for_more_time_than_we_have_is_not_waited_for() -> None:
    async with serving(Reply(429, status(429, message="slow down"), retry_after="3600")) as api:
        with pytest.raises(Unavailable, match="slow down"):
            await get(api.client())


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (Reply(401, status(401, "Unauthorized", "Unauthorized")), Denied, "does not know the tester.*GET /apis"),
        (Reply(403, status(403, "Forbidden", 'User "x" cannot get')), Denied, 'User "x" cannot get'),
        (Reply(404, status(404, "NotFound", "not found", name="n")), NotFound, "not found"),
        (Reply(404, status(404, "NotFound", "the server could not find the requested resource")), Unavailable, "CRD"),
        (Reply(404, "404 page not found"), Unavailable, "install its CRD"),
        (Reply(409, status(409, "Conflict", "modified")), Conflict, "modified"),
        (Reply(410, status(410, "Expired", "too old")), Compacted, "list again"),
        (Reply(422, status(422, causes=[{"field": "spec.tier", "message": "bad"}])), Invalid, "spec.tier: bad"),
        (Reply(422, status(422, message="bad")), Invalid, "bad"),
        (Reply(400, status(400, "BadRequest", "what?")), StoreError, "what?"),
        (Reply(413, "too large"), StoreError, "too large"),
    ],
)
async def test_every_refusal_has_its_meaning(reply: Reply, error: type[QosError], words: str) -> None:
    async with serving(reply) as api:
        with pytest.raises(error, match=words):
            await get(api.client(patience_s=0))


async def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    async with serving(OK, OK, OK) as api:
        asking = api.client(token_file=file)
        with pytest.raises(Denied, match="cannot read the token in"):
            await get(asking)
        for token in ("one", "one", "another"):
            (tmp_path / "new").write_text(f"{token}\n")
            (tmp_path / "new").rename(file)  # as a kubelet does
            await get(asking)
        sent = [head.lower().partition("authorization: bearer ")[2].partition("\r")[0] for head, _ in api.heard]
        assert sent == ["one", "one", "another"]


async def test_writes_name_their_field_manager_and_deletes_their_preconditions() -> None:
    async with serving(OK, OK) as api:
        asking = api.client()
        await asking.patch(PATH, {"status": {}}, "apply", force=True)
        await delete(asking)
        (apply, _), (_, conditions) = api.heard
        assert "force=true&fieldManager=j10ce-qos" in apply
        assert "application/apply-patch+yaml" in apply
        assert '"preconditions":{"uid":"u","resourceVersion":"7"}' in conditions
