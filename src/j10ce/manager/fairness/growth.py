"""What a write adds to the store."""

from __future__ import annotations

from typing import Final

from j10ce.manager.identity import Act, Role
from j10ce.model.kinds import Object, Policy
from j10ce.model.schema import encode
from j10ce.policy.document.unrecorded import KEPT

MOST_REVISIONS: Final = KEPT + 2  # of one policy: the last ones, the stable and the admitted one


def growth(act: Act) -> int:
    """By how many bytes a write made grow what its caller has stored; a report has a bound of its own.

    The spec of a policy counts with all that its history may hold of it. An edit gives nothing of that back, since what
    was there before it is kept; the end of the policy does.
    """
    if act.part == "status" or act.caller.role is Role.ADMIN:
        return 0
    kept = _history(act.after) - _history(act.before)
    return _size(act.after) - _size(act.before) + (kept if act.after is None else max(0, kept))


def _size(obj: Object | None) -> int:
    return 0 if obj is None else len(encode(obj))


def _history(obj: Object | None) -> int:
    return MOST_REVISIONS * len(encode(obj.spec)) if isinstance(obj, Policy) else 0


def possible_growth(act: Act) -> int:
    """The same of a write whose caller gave up: it may be on its way to the disk. A delete gives nothing back then."""
    return max(0, growth(act)) if act.announced else 0
