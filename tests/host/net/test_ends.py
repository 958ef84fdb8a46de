"""What the kernel tells of addresses at other ends of links is read, whatever else comes is refused or left out."""

from __future__ import annotations

import struct
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt
from j10ce.host.net.ends import FarEnd, addresses
from j10ce.host.net.links import far_ends
from j10ce.host.net.netlink import Message, attribute
from tests.host.net.test_netlink import link


def address(text: bytes, index: int = 2, scope: int = 0) -> Message:
    family = 2 if len(text) == 4 else 10
    return Message(20, 0, 1, struct.pack("=BBBBI", family, 24, 0, scope, index) + attribute(2, text))


def test_addresses_of_one_link_are_told_as_people_write_them() -> None:
    v6 = bytes.fromhex("fd00000000000000000000000000007f")
    every = [
        address(bytes([10, 0, 0, 7])),
        address(v6),
        address(bytes(4), index=3),
        address(bytes([127, 0, 0, 1]), scope=254),
    ]
    assert addresses(every, 2) == ["10.0.0.7", "fd00::7f"]


def test_the_other_end_is_that_of_a_pair_across_namespaces() -> None:
    across = attribute(5, struct.pack("=I", 9)) + attribute(37, struct.pack("=i", 4))
    here = attribute(5, struct.pack("=I", 9))
    every = [
        link("a", 2, made="veth", more=across),
        link("b", 3, made="veth", more=here),
        link("c", 4, made="vlan", more=across),
    ]
    assert far_ends(every) == {2: FarEnd(4, 9)}


@given(st.binary(max_size=200))
def test_damaged_messages_are_refused_or_left_out(body: bytes) -> None:
    for kind, read in ((20, lambda m: addresses(m, 2)), (16, far_ends)):
        with suppress(Corrupt):
            read([Message(kind, 0, 1, body)])
