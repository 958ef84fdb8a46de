"""Proto, struct and JSON say the same (invariant 11), for every kind and every field."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings

from j10ce.errors import Invalid
from j10ce.manager.grpc_codec import message_of, plain_of
from j10ce.manager.grpc_shape import messages
from j10ce.manager.proto import objects_pb2 as pb
from j10ce.model.kinds import HoldSpec, NodeReport, Object, QoSProfileSpec, UnitCount
from j10ce.model.schema import convert, encode, parse
from tests.model.generate import objects


@given(objects())
@settings(max_examples=300, deadline=None)
def test_a_message_is_the_object(obj: Object) -> None:
    struct = type(obj)
    sent = type(message_of(obj)).FromString(message_of(obj).SerializeToString())
    assert convert(plain_of(sent, struct), struct) == obj
    assert parse(encode(obj), struct) == obj


def test_what_has_no_time_zone_counts_as_utc() -> None:
    heartbeat = datetime(2026, 1, 31, 12)  # noqa: DTZ001
    sent = message_of(NodeReport(heartbeat=heartbeat))
    assert plain_of(sent, NodeReport) == {"heartbeat": heartbeat.replace(tzinfo=UTC)}


def test_an_integer_beyond_64_bits_is_shown_at_their_end() -> None:
    assert plain_of(message_of(UnitCount(used=10**30, lent=-(10**30))), UnitCount) == {
        "used": 2**63 - 1,
        "lent": -(2**63),
    }


def test_a_required_list_is_empty_in_a_whole_object_only() -> None:
    assert plain_of(pb.HoldSpec(), HoldSpec) == {"knobs": []}
    assert plain_of(pb.HoldSpec(), HoldSpec, whole=False) == {}


def test_an_unspecified_choice_is_absent() -> None:
    spec = pb.QoSProfileSpec(tier=pb.TIER_UNSPECIFIED, cpu=pb.CpuSection(latency=pb.CpuSection.LATENCY_REALTIME))
    assert plain_of(spec, QoSProfileSpec) == {"cpu": {"latency": "realtime"}}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        pytest.param(pb.HoldSpec(expires=Timestamp(seconds=10**12)), "expires", id="a time that never comes"),
        pytest.param(pb.QoSProfileSpec(tier=99), "tier", id="a choice that is none"),
        pytest.param(pb.PolicyRevision(data="{"), "data", id="text that is no JSON"),
        pytest.param(pb.PolicyRevision(data="[1]"), "data", id="JSON that is no object"),
        pytest.param(pb.QoSProfileSpec(cpu=pb.CpuSection(burst="lots")), "cpu.burst", id="text that is no quantity"),
    ],
)
def test_what_does_not_fit_is_told_at_its_place(message: Message, field: str) -> None:
    struct = next(s for s in messages() if s.__name__ == message.DESCRIPTOR.name)
    with pytest.raises(Invalid) as refused:
        convert(plain_of(message, struct), struct)
    assert field in [finding.path for finding in refused.value.findings]
