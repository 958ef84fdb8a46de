"""Rooms: a folder has at most twelve files, and its docstring is the map that names them all."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import PurePath

from tests.style.sources import CLONE, PACKAGE, product

MOST_FILES = 12
UNREAD = {"proto/"}  # generated


def rooms() -> dict[str, list[str]]:
    """The files and folders of each folder of the package: kernel -> [cgroup/, guard, ...]."""
    held = defaultdict(set)
    for source in product():
        path = PurePath(source.module)
        held[path.parent.as_posix()].add(path.stem)
        for folder in path.parents[:-1]:
            held[folder.parent.as_posix()].add(f"{folder.name}/")
    return {room: sorted(names - {"__init__"}) for room, names in held.items()}


def test_a_folder_has_at_most_twelve_files() -> None:
    files = {room: sum(not name.endswith("/") for name in names) for room, names in rooms().items()}
    wide = {room: n for room, n in files.items() if n > MOST_FILES}
    assert not wide, "give its files rooms of their own"


def test_the_map_of_a_room_names_every_file_in_it() -> None:
    missing = {
        room: lost for room, names in rooms().items() if (lost := [name for name in names if not is_named(room, name)])
    }
    assert not missing, "the docstring of the room's __init__ names them in reading order"


def is_named(room: str, name: str) -> bool:
    """At the beginning of a line."""
    return (
        re.search(rf"^    {re.escape(name)}(?=\s)", (PACKAGE / room / "__init__.py").read_text(), re.MULTILINE)
        is not None
    )


def test_the_map_of_a_room_names_no_file_that_is_gone() -> None:
    extra = {room: lost for room, names in rooms().items() if (lost := sorted(named(room) - {*names, *UNREAD}))}
    assert not extra


def named(room: str) -> set[str]:
    return set(re.findall(r"^    ([a-z]\w*/?)  ", (PACKAGE / room / "__init__.py").read_text(), re.MULTILINE))


def test_every_package_has_an_order_of_its_own_in_a_sentence() -> None:
    contracts = tomllib.loads((CLONE / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    ordered = {c["containers"][0] for c in contracts if c["type"] == "layers" and c["exhaustive"] and " " in c["name"]}
    assert not {f"j10ce.{name.rstrip('/')}" for name in rooms()["."] if name.endswith("/")} - ordered
