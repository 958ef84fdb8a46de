"""What the documentation says in code blocks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

CLONE = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def pages() -> list[Path]:
    paths = [CLONE / "README.md", CLONE / "CONTRIBUTING.md", *sorted((CLONE / "docs").rglob("*.md"))]
    return [*paths, *sorted((CLONE / "examples").rglob("*.md"))]


def blocks() -> Iterator[Block]:
    for page in pages():
        text = page.read_text()
        for fence in FENCE.finditer(text):
            line = text[: fence.start()].count("\n") + 1
            yield Block(str(page.relative_to(CLONE)), line, fence[1], fence[2])


def commands(block: Block) -> list[str]:
    """The lines a reader would type: after `$ ` in a console block, else lines that start with our command."""
    if block.language == "console":
        return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    return [line.split("  #")[0].strip() for line in block.text.splitlines() if line.startswith("j10ce-qos ")]


def type_kubectl(
    page: str, executable: Path, kubeconfig: Path, home: Path, instead: Mapping[str, str] | None = None
) -> int:
    """Type every kubectl command of a page, in order; each has to succeed and say something. How many there are.

    `wait` says nothing where what it waits for has happened already.
    `instead`: what a reader of another version types, where the page says so."""
    (home / "kubectl").symlink_to(executable)
    env = {**os.environ, "PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
    typed = (line for block in blocks() if block.page == page for line in commands(block))
    lines = [line for line in typed if line.startswith("kubectl ")]
    for line in lines:
        for said, meant in (instead or {}).items():
            line = line.replace(said, meant)
        done = subprocess.run(["bash", "-c", line], cwd=CLONE, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout or " wait " in line, f"{line} says nothing"
    return len(lines)
