"""However a stream arrives, its lines are the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from j10ce.http.lines import Cutter, lines

PIECES = st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"\n\n", b"d\ne", b"f\n"]))


@given(PIECES)
def test_lines_do_not_depend_on_how_their_bytes_arrive(pieces: list[bytes]) -> None:
    cutter = Cutter()
    cut = [line for piece in pieces for line in cutter.cut(piece)]
    assert [*cut, bytes(cutter.begun)] == b"".join(pieces).split(b"\n")


async def test_what_was_cut_off_in_the_middle_of_a_line_is_dropped() -> None:
    async def arriving() -> AsyncIterator[bytes]:
        for piece in (b"one\ntw", b"o\n", b"thr"):
            yield piece

    assert [line async for line in lines(arriving())] == [b"one", b"two"]
