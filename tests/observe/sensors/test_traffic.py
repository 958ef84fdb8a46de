"""What the kernel counts of links is read line by line; a line that is none is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.observe.sensors.traffic import moved

COUNTERS = b"""Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compr
    lo:  141200     310    0    0    0     0          0         0   141200     310    0    0    0     0       0        0
  eth0:26000000   18000    0    0    0     0          0         0  1300000    9000    0    0    0     0       0        0
"""


def test_bytes_of_each_link_are_read() -> None:
    assert list(moved(COUNTERS)) == [("lo", 141200, 141200), ("eth0", 26000000, 1300000)]


@given(st.binary(max_size=300))
def test_what_is_no_line_of_counters_is_left_out(text: bytes) -> None:
    assert all(received >= 0 and sent >= 0 for _, received, sent in moved(text))
