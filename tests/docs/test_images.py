"""The pictures are what their sources say, and their PNGs are made from them."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import CLONE

PICTURES = sorted((CLONE / "docs/images").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_says_what_it_shows(picture: Path) -> None:
    title = ElementTree.parse(picture).getroot().find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_its_png_is_made_from_it(picture: Path) -> None:
    """`make generate` where rsvg-convert is installed makes it again."""
    assert sha256(picture.read_bytes()).hexdigest().encode() in picture.with_suffix(".png").read_bytes()


@pytest.mark.parametrize("source", sorted((CLONE / "docs/images").glob("*.toml")), ids=lambda path: path.stem)
def test_it_is_what_its_source_says(source: Path) -> None:
    script = f"import generate_images as g, tomllib; print(g.drawn(tomllib.loads({source.read_text()!r})), end='')"
    drawn = subprocess.run(
        [sys.executable, "-c", script], cwd=CLONE / "tools", capture_output=True, text=True, check=True
    )
    assert drawn.stdout == source.with_suffix(".svg").read_text(), "make generate"


def test_there_are_pictures() -> None:
    assert {path.stem for path in PICTURES} >= {"architecture", "deploy", "protection"}
