"""How far a policy has come on the nodes: who obeys it, who fails with it, and where its rollout stands."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, UnsetType

from j10ce.model.bounds import Text, Word
from j10ce.model.parts.strict import Strict


class FailingNode(Strict, frozen=True, kw_only=True):
    node: Word
    why: Text


class NodeCount(Strict, frozen=True, kw_only=True):
    """Of the nodes that have to obey the present revision. `named` are the first of the failing ones."""

    wanted: int = 0
    applied: int = 0
    failing: int = 0
    silent: int = 0
    named: tuple[FailingNode, ...] = ()


class RolloutStatus(Strict, frozen=True, kw_only=True):
    """Where a rollout stands. A node obeys either the present revision or the stable one, never a third."""

    revision: int = 0  # the generation this speaks of; 0: nobody has looked yet
    change: Word = ""  # names what the spec asks for, `rollout` aside: steps of one rollout share it
    reached: int = 0  # cohorts below it may have the revision, in percent
    stopped: Text = ""  # why it stopped
    back: tuple[str, ...] = ()  # nodes that failed with the revision and went back to the stable one
    first: Word = ""  # the node that takes the revision although its cohort is not reached: else nobody would
    stable: int = 0  # the last revision that all nodes took; 0: none
    applied: datetime | UnsetType = UNSET  # since when every node obeys it without a failure
