"""How queues are spelled: what is told to the kernel is read from it, and the program jumps only within itself."""

from __future__ import annotations

import math
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt
from j10ce.host.mounts import Hierarchies
from j10ce.host.net import queues
from j10ce.host.net.bpf import Map
from j10ce.host.net.classes import CLASSES, DOORS, NAMES
from j10ce.host.net.queues import HtbClass
from j10ce.kernel.net import foreign, htb
from j10ce.kernel.net.program import MOST_LEVEL, classifier
from j10ce.kernel.net.traffic import TrafficClasses
from j10ce.model.knob import Setting, Support, workload

API = workload("default", "api")
NO_DESCRIPTOR = 1 << 30
rates = st.integers(1, htb.NO_CEIL)


def read(body: bytes) -> None:
    with suppress(Corrupt):
        seen = queues.queue(body)
        queues.htb_class(seen)
        queues.counted(seen)
        queues.program(seen)


@given(st.integers(htb.FIRST, htb.LAST), rates, rates, st.integers(0, 7))
def test_a_class_is_read_as_it_was_told(minor: int, rate: int, ceil: int, priority: int) -> None:
    seen = queues.queue(htb.branch(2, minor, htb.WHOLE, rate, ceil, priority).body)
    assert (seen.link, seen.handle, seen.kind) == (2, htb.handle(minor), "htb")
    assert queues.htb_class(seen) == HtbClass(htb.handle(htb.WHOLE), rate, max(rate, ceil), priority)


@given(st.integers(8_000, 400 * 10**9 // 8))
def test_whoever_has_no_class_and_what_must_not_wait_have_a_small_part_of_every_link(rate: int) -> None:
    whole, others, system = (queues.htb_class(queues.queue(r.body)) for r in htb.trunk(2, rate))
    assert whole is not None
    assert others is not None
    assert system is not None
    assert (whole.rate, whole.ceil) == (rate, rate)
    assert 8_000 <= system.rate <= others.rate <= max(8_000, rate * 0.011)
    assert system.priority == others.priority, "beyond its rate it is served as they are"


@pytest.mark.parametrize("levels", [(), (1,), (2, 3), tuple(range(1, MOST_LEVEL + 1))], ids=len)
def test_every_jump_of_the_program_lands_in_it_and_forward(levels: tuple[int, ...]) -> None:
    maps = {name: Map(NO_DESCRIPTOR, 8, 4) for name in (NAMES, CLASSES, DOORS)}
    code = classifier(levels, maps, htb.handle(htb.SYSTEM), doors=len(levels) > 1)
    every = [struct.unpack_from("=BBhi", code, at) for at in range(0, len(code), 8)]
    jumps = [(n, offset) for n, (op, _, offset, _) in enumerate(every) if op & 0x07 == 0x05 and op not in (0x85, 0x95)]
    assert all(offset >= 0 and n + 1 + offset < len(every) for n, offset in jumps)
    assert every[-1][0] == 0x95


@given(st.binary(max_size=200))
def test_a_damaged_queue_is_refused_or_read(body: bytes) -> None:
    read(body)


@given(st.data())
def test_a_class_with_one_byte_changed_is_refused_or_read(data: st.DataObject) -> None:
    body = bytearray(htb.branch(2, htb.FIRST, htb.WHOLE, 10**6, 10**7, 3).body)
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(body))


@given(st.text(max_size=60))
def test_what_the_journal_does_not_spell_is_refused(text: str) -> None:
    with suppress(Corrupt):
        foreign.replay(text)


@given(
    st.sampled_from(["net.egress.floor", "net.egress.ceil", "net.egress.priority"]),
    st.floats(0, 1e12) | st.just(math.inf),
)
def test_what_the_kernel_makes_of_a_value_it_leaves_as_it_is(knob: str, value: float) -> None:
    traffic = TrafficClasses(None, Hierarchies({}), {"egress": Support(True)})  # type: ignore[arg-type]
    setting = Setting(API, knob, "eth0")
    once = traffic.quantise(setting, value)
    assert traffic.quantise(setting, once) == once
