"""What the kernel says of a TCP connection is read; whatever else comes is refused or left out."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt
from j10ce.host.net.connections import TcpConnection, connection
from j10ce.host.net.netlink import attribute

COOKIE = b"12345678"


def spelled(here: str, there: str, *, cgroup: int | None = 77, info: int = 200) -> bytes:
    """As sock_diag spells it; `info`: how much of tcp_info this kernel knows."""
    family = socket.AF_INET6 if ":" in here else socket.AF_INET
    ends = b"".join(socket.inet_pton(family, end).ljust(16, b"\0") for end in (here, there))
    head = struct.pack("=BBBB", family, 1, 0, 0) + struct.pack("!HH", 4000, 80) + ends + bytes(4) + COOKIE + bytes(20)
    known = bytearray(200)
    struct.pack_into("=I", known, 68, 3500)
    struct.pack_into("=I", known, 100, 12)
    owner = b"" if cgroup is None else attribute(21, struct.pack("=Q", cgroup))
    return head + attribute(2, bytes(known[:info])) + owner


@pytest.mark.parametrize(("here", "there"), [("192.0.2.1", "192.0.2.2"), ("fd00::1", "fd00::2")], ids=["IPv4", "IPv6"])
def test_a_connection_says_whose_it_is_and_how_it_fares(here: str, there: str) -> None:
    assert connection(spelled(here, there)) == TcpConnection(COOKIE, 77, 3500, 12)


@pytest.mark.parametrize(("here", "there"), [("127.0.0.1", "127.0.0.9"), ("::1", "::1"), ("192.0.2.1", "192.0.2.1")])
def test_a_connection_of_the_machine_with_itself_is_none_of_the_networks(here: str, there: str) -> None:
    assert connection(spelled(here, there)) is None


def test_a_kernel_that_says_no_cgroup_or_too_little_is_told_nothing_of() -> None:
    assert connection(spelled("192.0.2.1", "192.0.2.2", cgroup=None)) is None
    assert connection(spelled("192.0.2.1", "192.0.2.2", info=72)) is None


@given(st.binary(max_size=400))
def test_bytes_that_no_kernel_sends_are_refused_or_read(body: bytes) -> None:
    with suppress(Corrupt):
        connection(body)


@given(st.data())
def test_one_byte_changed_is_refused_or_read(data: st.DataObject) -> None:
    body = bytearray(spelled("192.0.2.1", "192.0.2.2"))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Corrupt):
        connection(bytes(body))
