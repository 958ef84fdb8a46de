"""What Terway's files of a node are in our own words: every number is in an object or in a note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.terway.files import GLOBAL, PODS
from j10ce.dialects.terway.native import from_files
from j10ce.model.quantity import Quantity

KEYS = [f"{of}_{way}_bps_{word}" for of in ("hw", "l0", "l1", "l2") for way in ("tx", "rx") for word in ("min", "max")]


def test_what_links_carry_is_bits_in_each_direction() -> None:
    made = from_files({GLOBAL: "hw_tx_bps_max 125000000\nhw_rx_bps_max 12500000"}, ["eth0"])
    (strategy,) = made.objects
    link = strategy.spec.network.links["eth0"]
    assert (link.egress, link.ingress) == (Quantity.parse("1Gbit"), Quantity.parse("100Mbit"))


@pytest.mark.parametrize("links", [[], ["eth0"]], ids=["no link", "a link"])
@given(said=st.dictionaries(st.sampled_from(KEYS), st.integers(1, 10**9)))
def test_every_rate_is_in_a_note_with_its_bytes(links: list[str], said: dict[str, int]) -> None:
    made = from_files({GLOBAL: "\n".join(f"{k} {v}" for k, v in said.items())}, links)
    noted = {(f.path.removeprefix(f"{GLOBAL}."), f.value) for f in made.notes}
    assert noted >= set(said.items())
    assert bool(made.objects) == bool(links and {"hw_tx_bps_max", "hw_rx_bps_max"} & said.keys())


@pytest.mark.parametrize("text", ["", "hw_tx_bps_max 0"], ids=["empty", "off"])
def test_a_file_that_says_nothing_makes_nothing(text: str) -> None:
    assert from_files({GLOBAL: text}, ["eth0"]) == ((), (), ())


def test_what_is_wrong_in_either_file_is_named() -> None:
    made = from_files({GLOBAL: "speed 5", PODS: "[]"}, ["eth0"])
    assert [f.path for f in made.findings] == [f"{GLOBAL}:1", PODS]
