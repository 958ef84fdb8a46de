"""Draw what protection is worth, and write its numbers into the pages: all from docs/images/protection.json.

`python -m benchmarks.latency docs/images/protection.json` measures, and writes that file.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from svg import picture, rect, save, text

CLONE = Path(__file__).resolve().parent.parent
DATA = CLONE / "docs/images/protection.json"
BARS = (
    ("no QoS", "without j10ce-qos", "bad"),
    ("kubernetes", "Kubernetes' CPU shares", "plain"),
    ("ours", "with j10ce-qos", "good"),
    ("alone", "alone on the machine", "plain"),
)
ARMS = {
    "alone": "alone",
    "no QoS": "no QoS",
    "kubernetes": "Kubernetes' shares, as kubelet lays them out",
    "ours": "**ours**: `run --profile ls` beside `run --profile be`",
    "ceiling": "ceiling: the service under SCHED_FIFO",
}
LEFT, TOP, WIDTH, STEP, BAR = 190, 92, 500, 38, 22
Arms = Mapping[str, Mapping[str, float]]


def main() -> int:
    run = json.loads(DATA.read_text())
    arms = run["arms"]
    save(DATA.with_suffix(".svg"), chart(run, arms))
    put("README.md", "protection", sentence(run, arms))
    put("docs/numbers.md", "protection", "\n".join(table(arms)))
    return 0


def chart(run: Mapping[str, Any], arms: Arms) -> str:
    """Bars on a logarithmic scale: between the shortest and the longest is a factor of hundreds."""
    title = f"p99 latency of a service beside {run['hogs']} CPU hogs"
    most = 10 ** math.ceil(math.log10(max(arms[name]["p99"] for name, _, _ in BARS)))
    bottom = TOP + STEP * len(BARS)
    return picture(760, bottom + 64, title, bars(arms, title, most, bottom, run))


def bars(arms: Arms, title: str, most: float, bottom: float, run: Mapping[str, Any]) -> Iterator[str]:
    decades = math.log10(most)
    yield text(24, 36, title, size=17, bold=True, anchor="start")
    yield text(24, 58, f"less is better · logarithmic scale · {run['machine']}", fill="soft", anchor="start")
    for power in range(round(decades) + 1):
        x = LEFT + WIDTH * power / decades
        yield f'<path class="edge-stroke" d="M{x:g} {TOP - 8} V{bottom + 4:g}"/>'
        yield text(x, bottom + 22, f"{10**power:,} ms", size=11.5, fill="soft")
    for number, (name, words, colour) in enumerate(BARS):
        y, p99 = TOP + STEP * number, arms[name]["p99"]
        width = WIDTH * max(0.02, math.log10(p99) / decades)
        bold = name in ("no QoS", "ours")
        yield text(LEFT - 12, y + 16, words, size=13, bold=bold, anchor="end")
        yield rect(LEFT, y, width, BAR, colour, radius=3)
        yield text(LEFT + width + 10, y + 16, spelled(p99), size=13, bold=bold, anchor="start")
    yield text(24, bottom + 50, described(run), size=11.5, fill="soft", anchor="start")


def described(run: Mapping[str, Any]) -> str:
    return (
        f"An open-loop service that needs {run['load']:.0%} of the machine; medians of {run['rounds']} rounds, "
        "all arms in turn. “make bench” measures yours."
    )


def sentence(run: Mapping[str, Any], arms: Arms) -> str:
    without, ours, alone = (arms[name]["p99"] for name in ("no QoS", "ours", "alone"))
    lines = (
        f"**{spelled(without)} → {spelled(ours)}.** That is the p99 latency of a service beside {run['hogs']} CPU",
        f"hogs, without and with j10ce-qos; alone it has {spelled(alone)}. The hogs get all that is left:",
        f"the machine is {arms['ours']['busy']:.0%} busy. [How it is measured](docs/numbers.md), and what",
        "Kubernetes' own CPU shares reach.",
    )
    return "\n".join(lines)


def table(arms: Arms) -> Iterator[str]:
    yield "| arm | p50 ms | p99 ms | p99.9 ms | p99 ÷ alone | machine busy |"
    yield "|---|---|---|---|---|---|"
    for name, words in ARMS.items():
        arm = arms[name]
        times = " | ".join(short(arm[key]) for key in ("p50", "p99", "p99.9"))
        ratio = short(arm["p99"] / arms["alone"]["p99"])
        ratio = f"**{ratio}**" if name == "ours" else ratio
        yield f"| {words} | {times} | {ratio} | {arm['busy']:.0%} |".replace("%", " %")


def spelled(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.2f} ms"


def short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.2f}"


def put(page: str, name: str, words: str) -> None:
    """Between `<!-- name -->` and `<!-- /name -->`."""
    path = CLONE / page
    between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=\n<!-- /{name} -->)", re.DOTALL)
    before = path.read_text()
    if not between.search(before):
        raise SystemExit(f"{page} has no place for {name}: write <!-- {name} --> and <!-- /{name} -->")
    path.write_text(between.sub(lambda _: words, before))


if __name__ == "__main__":
    sys.exit(main())
