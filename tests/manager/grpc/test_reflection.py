"""Who asks what there is to call is limited as others are, and known for as long as its token is."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from j10ce.manager.fairness import large
from tests.manager.grpc.both import KNOWN, Both
from tests.manager.grpc.test_access import Metadata, enrolled, settled
from tests.manager.grpc.test_verbs import Refused

LISTING = reflection_pb2.ServerReflectionRequest(list_services="")


def asking(both: Both, metadata: Metadata) -> Any:
    return reflection_pb2_grpc.ServerReflectionStub(both.channel).ServerReflectionInfo(metadata=metadata)


async def asked(call: Any, *questions: Any) -> Any:
    """The last answer to more questions; raises Refused."""
    answer = None
    for question in questions or (LISTING,):
        await call.write(question)
        answer = await call.read()
    return answer


async def test_reflection_ends_with_its_token(both: Both) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    call = asking(both, viewer)
    assert (await asked(call)).list_services_response.service
    await both.rest.store.delete("Credential", "", "eve")
    await settled(both, viewer[0][1].removeprefix("Bearer "), known=False)
    with pytest.raises(Refused) as refused:
        await asked(call)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_open_reflection_counts_as_a_watch_and_few_of_it_are_read(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "PATIENCE_S", 0.05)
    viewer = await enrolled(both, "eve", role="viewer")
    calls = [asking(both, viewer) for _ in range(8)]
    for call in calls:
        await asked(call)
    with pytest.raises(Refused, match="8 such requests of a caller are read together"):
        await asked(asking(both, viewer))
    monkeypatch.setattr(large, "PATIENCE_S", 30.0)
    calls += [asking(both, viewer) for _ in range(92)]
    with pytest.raises(Refused, match="has 100 watches open"):
        await asked(asking(both, viewer))
    for call in calls:
        call.cancel()
    assert (await asked(asking(both, KNOWN))).list_services_response.service


async def test_every_question_of_reflection_is_a_request(both: Both) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    call = asking(both, viewer)
    question = reflection_pb2.ServerReflectionRequest(list_services="x" * 60_000)
    with pytest.raises(Refused, match="writes more than") as refused:
        await asked(call, *[question] * 350)  # 16 MiB are its burst
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
