"""Dockerfiles as lists of instructions."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

CLONE = Path(__file__).resolve().parents[2]
FILES = sorted((CLONE / "build").glob("*.Dockerfile"))
COMMANDS = {"pip": f"{sys.executable} -m pip -q ", "python": f"{sys.executable} "}


class Instruction(NamedTuple):
    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the exec form, or by spaces."""
        return list(json.loads(self.text)) if self.text.startswith("[") else self.text.split()


def instructions(file: Path) -> list[Instruction]:
    lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def stages(file: Path) -> list[list[Instruction]]:
    collected: list[list[Instruction]] = []
    for instruction in instructions(file):
        if instruction.word == "FROM":
            collected.append([])
        collected[-1].append(instruction)
    return collected


def program(file: Path) -> str:
    """What an image runs."""
    (entry,) = (i for i in stages(file)[-1] if i.word == "ENTRYPOINT")
    return entry.words[0]


def run_here(run: Instruction, folders: Mapping[str, Path]) -> str:
    """A RUN line for this machine's Python, with other folders than the image has."""
    line = re.sub(r"(?<![\w/])(pip|python) (?=install|--python|-m)", lambda m: COMMANDS[m[1]], run.text)
    for inside, here in folders.items():
        line = line.replace(inside, str(here))
    return line
