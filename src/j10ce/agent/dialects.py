"""Other systems' words on a node: which dialects there are, and what a workload says in them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import reduce
from typing import Final, Protocol

from j10ce.model.workload import Workload

# By name, the module whose `translate` reads it: an agent that needs none imports none.
DIALECTS: Final = {"koordinator": "j10ce.dialects.koordinator.overrides", "terway": "j10ce.dialects.terway.pods"}
# Kubernetes' own annotations are understood everywhere. Terway gives them another unit, and then reads them itself.
OWN: Final = "j10ce.dialects.bandwidth"
INSTEAD: Final = frozenset({"terway"})


class Dialect(Protocol):
    """What a workload says in another system's words becomes its overrides. Pure, and once is as good as twice."""

    def __call__(self, w: Workload, /) -> Workload: ...


def as_it_is(w: Workload, /) -> Workload:
    return w


def dialect(names: Iterable[str]) -> Dialect:
    """All of them, one after the other; the last one says what nobody before it said."""
    asked = [name for name in DIALECTS if name in {*names}]
    modules = [*(DIALECTS[name] for name in asked), *([] if INSTEAD & {*asked} else [OWN])]
    every: list[Dialect] = [importlib.import_module(module).translate for module in modules]
    return lambda w, /: reduce(lambda so_far, one: one(so_far), every, w)
