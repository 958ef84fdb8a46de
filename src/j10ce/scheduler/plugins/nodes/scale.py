"""Raw scores in the range that Kubernetes gives them: whole numbers from 0 to 100."""

from __future__ import annotations

import numpy as np

from j10ce.scheduler.cluster import Scores
from j10ce.scheduler.cycle.framework import MOST_SCORE


def scaled(raw: Scores) -> Scores:
    """The largest gets 100; where nobody has any, nobody gets any."""
    largest = raw.max(initial=0.0)
    return np.floor(raw * MOST_SCORE / largest) if largest > 0 else raw


def reversed_scaled(raw: Scores) -> Scores:
    """The largest gets nothing; where nobody has any, all get 100."""
    return MOST_SCORE - scaled(raw)
