"""Antagonists among ten are named, and where nobody is one nobody is accused: counts over seeded mixes."""

from __future__ import annotations

import math

from j10ce.control.interference.interference import Interference
from tests.control.interference.mixes import NAMED_S, attacks, judged, quiet_ones


def test_the_antagonist_among_ten_is_named_first_within_thirty_seconds_in_most_mixes() -> None:
    outcomes = [judged(mix, Interference(Interference.Config())) for mix in attacks(20)]
    good = [o for o in outcomes if o.right and o.after_s <= NAMED_S]
    assert len(good) >= 18, [o for o in outcomes if o not in good]


def test_nobody_is_accused_in_quiet_mixes() -> None:
    outcomes = [judged(mix, Interference(Interference.Config())) for mix in quiet_ones(20)]
    assert [o for o in outcomes if o.named] == []
    assert all(o.after_s == math.inf for o in outcomes)
