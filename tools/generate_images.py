"""Draw docs/images/*.toml as SVG: frames, boxes and arrows on a grid.

unit = 10                                     # pixels of a grid step
size = [110, 60]                              # of the picture, in steps
[[frame]]  title, at = [x, y], size = [w, h], note, note_at = x where it is not to stand beside the title
[[box]]    id, at, size, style, title, text = ["line", ...]
[[arrow]]  from = "id.side", to = "id.side", label, shift = [dx, dy] of the label, via = [[x, y], ...], both = true
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from svg import picture, rect, save, text

IMAGES = Path(__file__).resolve().parent.parent / "docs/images"
LINE = 15  # pixels between two lines of a box
WIDE = 9  # pixels of a letter in a title, about
END = re.compile(r"(\w+)\.(left|right|top|bottom)([+-][\d.]+)?")
SIDES = {"left": (0, 0.5), "right": (1, 0.5), "top": (0.5, 0), "bottom": (0.5, 1)}
Table = Mapping[str, Any]


def main() -> int:
    for source in sorted(IMAGES.glob("*.toml")):
        save(source.with_suffix(".svg"), drawn(tomllib.loads(source.read_text())))
    return 0


def drawn(drawing: Table) -> str:
    unit = drawing["unit"]
    boxes = {box["id"]: box for box in drawing["box"]}
    parts = [
        *(part for frame in drawing.get("frame", ()) for part in framed(frame, unit)),
        *(part for arrow in drawing.get("arrow", ()) for part in led(arrow, boxes, unit)),
        *(part for box in drawing["box"] for part in boxed(box, unit)),
    ]
    width, height = drawing["size"]
    return picture(width * unit, height * unit, drawing["title"], parts)


def framed(frame: Table, unit: float) -> Iterator[str]:
    x, y, width, height = area(frame, unit)
    yield rect(x, y, width, height, "frame", "edge", 8)
    yield text(x + 12, y + 21, frame["title"], size=14, bold=True, anchor="start")
    if note := frame.get("note"):
        beside = frame["note_at"] * unit if "note_at" in frame else x + 26 + WIDE * len(frame["title"])
        yield text(beside, y + 21, note, size=12, fill="soft", anchor="start")


def boxed(box: Table, unit: float) -> Iterator[str]:
    x, y, width, height = area(box, unit)
    style = box.get("style", "shell")
    lines = box.get("text", [])
    yield rect(x, y, width, height, style, f"{style}-edge")
    first = y + height / 2 - LINE * len(lines) / 2 + 5
    yield text(x + width / 2, first, box["title"], size=13, bold=True)
    for number, line in enumerate(lines, 1):
        yield text(x + width / 2, first + LINE * number + 1, line, size=11.5, fill="soft")


def led(arrow: Table, boxes: Mapping[str, Table], unit: float) -> Iterator[str]:
    points = [end(arrow["from"], boxes, unit), *_scaled(arrow.get("via", ()), unit), end(arrow["to"], boxes, unit)]
    path = " ".join(f"{'M' if not n else 'L'}{x:g} {y:g}" for n, (x, y) in enumerate(points))
    start = ' marker-start="url(#tip)"' if arrow.get("both") else ""
    yield f'<path class="line-stroke" d="{path}" fill="none" stroke-width="1.5" marker-end="url(#tip)"{start}/>'
    if label := arrow.get("label"):
        middle = len(points) // 2
        (x1, y1), (x2, y2) = points[middle - 1], points[middle]
        dx, dy = arrow.get("shift", (0, 0))
        at = (x1 + x2) / 2 + dx * unit, (y1 + y2) / 2 + dy * unit - 6
        yield text(*at, label, size=11.5, fill="soft", anchor=arrow.get("anchor", "middle"))


def end(name: str, boxes: Mapping[str, Table], unit: float) -> tuple[float, float]:
    """`id.side`, or `id.side+2`: so many steps from its middle."""
    match = END.fullmatch(name)
    if match is None:
        raise SystemExit(f"{name!r}: write id.left, id.right, id.top or id.bottom, and +2 or -2 behind it")
    box, side, moved = match.groups()
    x, y, width, height = area(boxes[box], unit)
    across, down = SIDES[side]
    away = float(moved or 0) * unit
    along = (0.0, away) if side in ("left", "right") else (away, 0.0)
    return x + width * across + along[0], y + height * down + along[1]


def area(part: Table, unit: float) -> tuple[float, float, float, float]:
    (x, y), (width, height) = part["at"], part["size"]
    return x * unit, y * unit, width * unit, height * unit


def _scaled(points: Any, unit: float) -> list[tuple[float, float]]:
    return [(x * unit, y * unit) for x, y in points]


if __name__ == "__main__":
    sys.exit(main())
