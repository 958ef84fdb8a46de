"""Proto, struct and JSON say the same (invariant 11), for every kind and every field."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given

from j10ce.errors import Invalid, Malformed
from j10ce.manager.grpc.codec import message_of, plain_of
from j10ce.manager.grpc.proto import objects_pb2 as pb
from j10ce.manager.openapi.shape import messages
from j10ce.model.kinds import HoldSpec, NodeReport, Object, QoSProfile, QoSProfileSpec, UnitCount
from j10ce.model.schema import convert, encode, parse
from tests.model.generate import objects


@given(objects())
def test_a_message_is_the_object(obj: Object) -> None:
    struct = type(obj)
    sent = type(message_of(obj)).FromString(message_of(obj).SerializeToString())
    assert convert(plain_of(sent, struct), struct) == obj
    assert parse(encode(obj), struct) == obj


def test_what_has_no_time_zone_counts_as_utc() -> None:
    heartbeat = datetime(2026, 1, 31, 12)  # noqa: DTZ001
    sent = message_of(NodeReport(heartbeat=heartbeat))
    assert plain_of(sent, NodeReport) == {"heartbeat": heartbeat.replace(tzinfo=UTC)}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("0001-01-01T00:30:00+14:00", "0001-01-01T00:30:00+00:00"),
        ("9999-12-31T23:30:00-12:00", "9999-12-31T23:30:00+00:00"),
    ],
)
def test_a_time_beyond_the_calendar_is_shown_at_its_end(said: str, shown: str) -> None:
    """One object with such a time broke every list that it is in."""
    sent = message_of(NodeReport(heartbeat=datetime.fromisoformat(said)))
    assert plain_of(sent, NodeReport) == {"heartbeat": datetime.fromisoformat(shown)}


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


@pytest.mark.parametrize("field", ["owner_references", "managed_fields"])
def test_a_message_of_very_many_parts_is_not_looked_through(field: str) -> None:
    """Half a million of them fit into one megabyte."""
    meta = pb.Meta()
    for _ in range(70_000):
        getattr(meta, field).add()
    with pytest.raises(Malformed, match="too many parts; send at most 8192"):
        plain_of(pb.QoSProfile(metadata=meta), QoSProfile)


def test_of_many_fields_that_nobody_knows_few_are_reported() -> None:
    with pytest.raises(Invalid, match="and 950 more"):
        plain_of(pb.QoSProfile.FromString(b"\xc0\x3e\x01" * 5000), QoSProfile)


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
def test_what_does_not_fit_is_reported_at_its_place(message: Message, field: str) -> None:
    struct = next(s for s in messages() if s.__name__ == message.DESCRIPTOR.name)
    with pytest.raises(Invalid) as refused:
        convert(plain_of(message, struct), struct)
    assert field in [finding.path for finding in refused.value.findings]
