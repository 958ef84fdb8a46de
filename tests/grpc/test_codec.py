"""Proto, struct and JSON say the same (invariant 11), for every kind and every field."""

from __future__ import annotations

from hypothesis import given, settings

from j10ce.manager.grpc_codec import message_of, plain_of
from j10ce.model.kinds import Object
from j10ce.model.schema import convert, encode, parse
from tests.model.generate import objects


@given(objects())
@settings(max_examples=300, deadline=None)
def test_a_message_is_the_object(obj: Object) -> None:
    struct = type(obj)
    sent = type(message_of(obj)).FromString(message_of(obj).SerializeToString())
    assert convert(plain_of(sent, struct), struct) == obj
    assert parse(encode(obj), struct) == obj
