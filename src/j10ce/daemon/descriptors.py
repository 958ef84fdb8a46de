"""How many files and connections a process may have open."""

from __future__ import annotations

import resource


def raise_descriptor_limit() -> None:
    """As far as an unprivileged process may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
