"""Which fields that somebody wrote have no equivalent of ours."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.keys import KeyConfig, walk
from j10ce.errors import Finding

NOT_HEEDED: Final = "not heeded"
NOTHING_ACTS: Final = "nothing here acts on it; leave it, or take it out"

# By key, patterns of paths.
WITHOUT_EQUIVALENT: Final[dict[str, tuple[str, ...]]] = {
    "colocation-config": ("metric*", "extensions*"),
    "resource-qos-config": (
        "policies.netQOSPolicy",
        "cgroupRoot.*",
        "*.blkioQOS.*",
        "*.networkQOS.*",
    ),
    "system-config": ("totalNetworkBandwidth",),
    "resource-amplification-config": ("*",),
}
OFF: Final[tuple[Any, ...]] = (False, 0, "0", "", {}, [])  # what changes nothing is not missed


def unheeded(key: str, path: str, config: KeyConfig, entries: str) -> Iterator[Finding]:
    """Of the cluster's strategy, which stands at `path`, and of every entry."""
    yield from _of(key, path, config.cluster)
    for n, entry in enumerate(config.entries):
        yield from _of(key, f"{key}.{entries}[{entry.name or n}]", entry.overlay)


def _of(key: str, where: str, overlay: Plain) -> Iterator[Finding]:
    patterns = WITHOUT_EQUIVALENT.get(key, ())
    for path, value in walk(overlay):
        if _is_identity(path, value) or (value not in OFF and any(fnmatchcase(path, p) for p in patterns)):
            shown = value if isinstance(value, str | int | float) else None
            yield Finding(f"{where}.{path}", shown, NOT_HEEDED, NOTHING_ACTS)


def _is_identity(path: str, value: Any) -> bool:
    """To give way is for best effort alone; to go first is what the better tiers do anyway."""
    if path.startswith("beClass."):
        return False
    return (path.endswith(".groupIdentity") and value < 0) or (path.endswith(".schedIdle") and value == 1)
