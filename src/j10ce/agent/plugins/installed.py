"""What other distributions bring: controllers, sensors and back ends, by their entry points."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from j10ce.host import child

CONTROLLERS: Final = "j10ce.controllers"
SENSORS: Final = "j10ce.sensors"
BACKENDS: Final = "j10ce.backends"


def installed(group: str = CONTROLLERS, search: Sequence[str] | None = None) -> dict[str, str]:
    """Name to `module:object`, by name. Reads the metadata by hand: `importlib.metadata` would cost 3 MiB."""
    points: dict[str, str] = {}
    for folder in child.search_path() if search is None else search:
        for file in glob(f"{folder}/*.dist-info/entry_points.txt"):  # skips what may not be read
            section = ""
            for line in Path(file).read_text(errors="replace").splitlines():
                section = line.strip() if line.strip().startswith("[") else section
                name, equals, where = line.partition("=")
                if section == f"[{group}]" and equals:
                    points.setdefault(name.strip(), where.strip())
    return dict(sorted(points.items()))


def made(where: str) -> Any:
    """One of what `module:Class` names. Runs that module's code in this process."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)()
