"""Pictures as SVG text: the same input gives the same bytes, in colours for light and dark pages.

A PNG stands beside each, for whoever cannot show SVG. It carries the hash of the SVG that it was made from. It is made
again only when that hash is another one and `rsvg-convert` is there: two machines never quarrel about its bytes.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from pathlib import Path

FONT = "system-ui, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
LIGHT = {
    "page": "#ffffff", "edge": "#d0d7de", "ink": "#1f2328", "soft": "#59636e", "line": "#6e7781", "frame": "#f6f8fa",
    "actor": "#fff8c5", "actor-edge": "#d4a72c", "core": "#ddf4ff", "core-edge": "#54aeff",
    "shell": "#ffffff", "shell-edge": "#afb8c1", "keep": "#fbefff", "keep-edge": "#c297ff",
    "machine": "#dafbe1", "machine-edge": "#4ac26b", "bad": "#cf222e", "good": "#1a7f37", "plain": "#8c959f",
}  # fmt: skip
DARK = {
    "page": "#0d1117", "edge": "#30363d", "ink": "#e6edf3", "soft": "#9198a1", "line": "#848d97", "frame": "#151b23",
    "actor": "#2b2410", "actor-edge": "#9e6a03", "core": "#0c2d4d", "core-edge": "#1f6feb",
    "shell": "#1c2128", "shell-edge": "#545d68", "keep": "#2a1f3d", "keep-edge": "#8957e5",
    "machine": "#12261e", "machine-edge": "#238636", "bad": "#f85149", "good": "#3fb950", "plain": "#6e7681",
}  # fmt: skip
KEY = b"Source-SHA256"


def picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            f"<style>{_rules(LIGHT)}@media (prefers-color-scheme: dark) {{{_rules(DARK)}}}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="line-fill" d="M0 0 8 4 0 8Z"/></marker></defs>',
            rect(0.5, 0.5, width - 1, height - 1, "page", "edge", 10),
            *parts,
            "</svg>\n",
        )
    )


def _rules(palette: dict[str, str]) -> str:
    fills = (f".{name}-fill{{fill:{colour}}}.{name}-stroke{{stroke:{colour}}}" for name, colour in palette.items())
    return "".join(fills)


def rect(x: float, y: float, width: float, height: float, fill: str, stroke: str = "", radius: float = 6) -> str:
    edge = f" {stroke}-stroke" if stroke else ""
    return (
        f'<rect class="{fill}-fill{edge}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"/>'
    )


def text(
    x: float, y: float, words: str, *, size: float = 12, fill: str = "ink", bold: bool = False, anchor: str = "middle"
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text class="{fill}-fill" x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"{weight}>'
        f"{escape(words)}</text>"
    )


def save(path: Path, svg: str) -> None:
    """The SVG, and the PNG beside it where it is out of date and can be made."""
    path.write_text(svg)
    png, mark = path.with_suffix(".png"), sha256(svg.encode()).hexdigest()
    if png.exists() and made_from(png) == mark:
        return
    tool = shutil.which("rsvg-convert")
    if tool is None:
        print(f"{png}: out of date; apt-get install librsvg2-bin, and generate again")
        return
    drawn = subprocess.run([tool, "--zoom", "2", path], capture_output=True, check=True).stdout
    png.write_bytes(_marked(drawn, mark))


def made_from(png: Path) -> str:
    """The hash of the SVG that a PNG was made from; empty where it does not say."""
    data = png.read_bytes()
    at = data.find(b"tEXt" + KEY + b"\0")
    begin = at + 4 + len(KEY) + 1
    return data[begin : begin + 64].decode() if at >= 0 else ""


def _marked(png: bytes, mark: str) -> bytes:
    """With the hash as a tEXt chunk right behind the header, which is the first 33 bytes."""
    chunk = b"tEXt" + KEY + b"\0" + mark.encode()
    return png[:33] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[33:]
