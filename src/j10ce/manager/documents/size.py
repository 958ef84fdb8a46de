"""How large the documents of nodes may become: an agent that cannot read its own hears of no floor or hold.

What is in force everywhere, or wherever a selector says, counts as sent to all; what names one node counts there.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.errors import Finding, Invalid
from j10ce.manager.identity import Role, current
from j10ce.model.kinds import Hold, MinimalReservationPolicy, NodeStrategy, Object, Policy, QoSProfile
from j10ce.model.knob import read_names
from j10ce.model.schema import encode
from j10ce.model.stored import Key, key_of
from j10ce.policy.document.document import HOSTNAME_LABEL, Spread, bare_hold, bare_policy
from j10ce.policy.reach import reaches

EVERYWHERE: Final = ""
MIB: Final = 1 << 20
MOST_SHARED: Final = 8 * MIB  # bytes that every node may have to be sent; with those of one node an agent reads 16 MiB
MOST_OWN: Final = 4 * MIB  # of what names one node
OF_SETTING: Final = 256  # bytes that a setting of a hold counts as at least: a node looks at each on every tick


class Weight(NamedTuple):
    node: str
    size: int


class Weights:
    """What each object adds to documents, and how much that is in all."""

    def __init__(self) -> None:
        self._each: dict[Key, Weight] = {}
        self._sums: Counter[str] = Counter()  # by node

    def put(self, key: Key, weight: Weight | None) -> None:
        """None: it adds nothing."""
        if before := self._each.pop(key, None):
            self._sums[before.node] -= before.size
            if not self._sums[before.node]:
                del self._sums[before.node]
        if weight:
            self._each[key] = weight
            self._sums[weight.node] += weight.size

    def check(self, new: Object) -> None:
        """Before a write; raises Invalid where its caller is no administrator and documents would become too large.

        What makes an object smaller is always possible.
        """
        if current().caller.role is Role.ADMIN or (weight := weight_of(new)) is None:
            return
        before = self._each.get(key_of(new), Weight(weight.node, 0))
        grown = weight.size - (before.size if before.node == weight.node else 0)
        total = self._sums[weight.node] + grown
        most = MOST_OWN if weight.node else MOST_SHARED
        if grown > 0 and total > most:
            whose = f"{weight.node} alone" if weight.node else "all nodes"
            problem = f"{weight.size} bytes of it, with which {whose} would be sent {total}"
            hint = f"at most {most} can be: delete holds, profiles or policies"
            hint += "" if weight.node else ", or name a node in a hold"
            raise Invalid([Finding("", None, problem, hint)], f"{new.kind} {new.metadata.name}")


def weight_of(obj: Object) -> Weight | None:
    """None: documents do not tell of it."""
    match obj:
        case Hold() if reaches(obj):
            settings = sum(len(read_names(name)) for name in obj.spec.knobs)
            return Weight(obj.spec.node, max(len(encode(bare_hold(obj))), OF_SETTING * settings))
        case QoSProfile() | MinimalReservationPolicy() | NodeStrategy():
            return Weight(named_by(obj) or EVERYWHERE, len(encode(bare_policy(obj))))
        case _:
            return None


def weight_of_all(wish: Policy, where: Spread) -> Weight:
    """The largest of what nodes obey of a policy and what they are to obey: which one they have is decided later."""
    names = {named_by(p) for p in (wish, where.present, where.earlier) if p is not None}
    sizes = [len(encode(p)) for p in (bare_policy(wish), where.present, where.earlier) if p is not None]
    return Weight(names.pop() or EVERYWHERE if len(names) == 1 else EVERYWHERE, max(sizes))


def named_by(policy: Policy) -> str | None:
    """The one node that a policy selects by its name; None: it may concern any."""
    if isinstance(policy, QoSProfile) or policy.spec.node_selector is UNSET:
        return None
    return policy.spec.node_selector.match_labels.get(HOSTNAME_LABEL)
