"""How every struct that crosses the border of the process is read and written."""

from __future__ import annotations

from msgspec import Struct


class Strict(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel", gc=False
):
    """Base of everything that is read from or written to the outside.

    Plain data that cannot form a cycle: the garbage collector need not walk through tens of thousands of objects.
    """
