"""Bytes of rtnetlink: what the kernel sends is read, whatever else comes is refused as a whole."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt
from j10ce.host.net.links import links
from j10ce.host.net.netlink import Message, NetlinkAnswer, attribute, attributes, messages, number, text

UNKNOWN = math.inf


def link(name: str, index: int = 2, *, flags: int = 1, kind: int = 1, made: str = "", more: bytes = b"") -> Message:
    info = attribute(18, attribute(1, made.encode() + b"\0")) if made else b""
    body = struct.pack("=BxHiII", 0, kind, index, flags, 0) + attribute(3, name.encode() + b"\0") + info + more
    return Message(16, 0, 1, body)


def route(*ways: int, bits: int = 0, table: int = 254, kind: int = 1) -> Message:
    hops = b"".join(struct.pack("=HBBi", 8, 0, 0, way) for way in ways)
    paths = attribute(9, hops) if len(ways) > 1 else attribute(4, struct.pack("=i", *ways))
    return Message(24, 0, 1, struct.pack("=BBBBBBBBI", 2, bits, 0, 0, table, 0, 0, kind, 0) + paths)


@given(st.lists(st.tuples(st.integers(1, 1000), st.binary(max_size=40)), max_size=6))
def test_attributes_come_back_as_they_were_packed(many: list[tuple[int, bytes]]) -> None:
    assert list(attributes(b"".join(attribute(k, v) for k, v in many))) == many


@given(st.binary(max_size=200))
def test_bytes_that_no_kernel_sends_are_refused_or_read(data: bytes) -> None:
    for read in (messages, attributes):
        try:
            list(read(data))
        except Corrupt:
            continue


@given(st.binary(max_size=120), st.binary(max_size=120))
def test_a_damaged_link_or_route_is_refused_or_read(body: bytes, way: bytes) -> None:
    try:
        links([Message(16, 0, 1, body)], [Message(24, 0, 1, way)], lambda _: UNKNOWN)
    except Corrupt:
        return


@given(st.data())
def test_a_link_with_one_byte_changed_is_refused_or_read(data: st.DataObject) -> None:
    body = bytearray(link("eth0", made="veth").body)
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        links([Message(16, 0, 1, bytes(body))], [], lambda _: UNKNOWN)
    except Corrupt:
        return


@pytest.mark.parametrize(
    ("message", "names"),
    [
        pytest.param(link("eth0"), ["eth0"], id="up"),
        pytest.param(link("eth0", flags=0), [], id="down"),
        pytest.param(link("lo", kind=772), [], id="loopback"),
        pytest.param(link("j10ce-i2", made="ifb"), [], id="ours"),
    ],
)
def test_links_that_are_up_are_listed_but_for_our_own(message: Message, names: list[str]) -> None:
    assert list(links([message], [], lambda _: UNKNOWN)) == names


@pytest.mark.parametrize(
    ("message", "managed"),
    [
        pytest.param(route(2), True, id="default"),
        pytest.param(route(7, 2), True, id="one-of-several"),
        pytest.param(route(2, bits=24), False, id="to-somewhere"),
        pytest.param(route(2, table=100), False, id="of-another-table"),
        pytest.param(route(2, kind=6), False, id="blackhole"),
        pytest.param(route(7), False, id="by-another"),
    ],
)
def test_a_link_is_managed_where_a_default_route_goes(message: Message, managed: bool) -> None:
    assert links([link("eth0")], [message], lambda _: UNKNOWN)["eth0"].managed is managed


@pytest.mark.parametrize(("made", "speed"), [("", 1e9), ("bond", 1e9), ("veth", UNKNOWN), ("tun", UNKNOWN)])
def test_a_speed_that_software_makes_up_is_not_known(made: str, speed: float) -> None:
    assert links([link("eth0", made=made)], [], lambda _: 1e9)["eth0"].speed == speed


def test_numbers_and_texts_are_the_machines_own() -> None:
    assert (number(struct.pack("=Q", 1 << 40)), number(b""), text(b"eth0\0junk")) == (1 << 40, 0, "eth0")


def test_an_answer_says_the_kernels_words() -> None:
    assert (str(NetlinkAnswer(17)), str(NetlinkAnswer(22, "no such class"))) == ("EEXIST", "EINVAL (no such class)")
