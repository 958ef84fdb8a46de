"""What a user of the same machine sends to the socket of the agent, one function per attack: what it costs others."""

from __future__ import annotations

import socket

import pytest

from j10ce.agent.http import Request, failure
from j10ce.agent.routes import PlanRequest, _body
from j10ce.errors import Invalid


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"\\u0061' + b"x" * 20_000 + b'":{' + b'"a":0,' * 200 + b'"a":0}}', id="keys that stand twice"),
        pytest.param(b'{"' + b"x" * 20_000 + b'":0}', id="an unknown field"),
    ],
)
def test_a_long_key_is_told_back_by_its_first_characters(body: bytes) -> None:
    with pytest.raises(Invalid) as told, socket.socket() as peer:
        _body(Request("POST", "/v1/plan", {}, {}, body, peer), PlanRequest)
    answer = failure(told.value).body
    assert b"x" * 150 in answer
    assert b"x" * 201 not in answer
    assert len(answer) < 50 * 600
