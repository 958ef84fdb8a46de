"""A verdict as one HTML file: nothing is loaded, nothing runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from j10ce.bench.report.picture import pictured
from j10ce.bench.report.words import asked, sentences, table
from j10ce.bench.verdict import Proof

STYLE: Final = (
    "body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1f2328}"
    "svg{max-width:100%;height:auto}table{border-collapse:collapse;font-size:.85rem}"
    "th,td{border-bottom:1px solid #d0d7de;padding:.3rem .6rem;text-align:left;white-space:nowrap}"
    "div{overflow-x:auto}dt{font-weight:600}"
)


def paged(verdicts: Sequence[Proof]) -> str:
    body = "\n".join(part for verdict in verdicts for part in _section(verdict))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<title>j10ce-qos prove</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>j10ce-qos prove</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(verdict: Proof) -> Iterator[str]:
    load = verdict.load
    yield f"<h2>{escape(verdict.scenario)}: {escape(verdict.asks)}</h2>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in sentences(verdict))
    yield pictured(verdict)
    yield "<div><table>"
    heads, *rows = table(verdict.lines)
    yield _row("th", heads)
    yield from (_row("td", row) for row in rows)
    yield "</table></div>"
    yield (
        f"<p>{load.rate:.0f} requests a second, {asked(load)}, due at random instants whether or "
        "not the ones before are done; a latency counts from the instant at which the request was due. "
        f"{load.workers} workers. Figures are medians of {verdict.rounds} rounds of {load.seconds:g} s in turns; "
        "in brackets is where 90 % of redrawn rounds and seconds lie. Isolation: p99 of a usual second alone ÷ p99 of "
        "the second, mean and worst hundredth. s > SLO: seconds with p99 above 1.2 × the worst second alone. "
        "BE ÷ free: CPU time of the antagonists ÷ what nobody else used; of a link or disk how much was used.</p>"
    )
    yield "<dl>"
    yield from (f"<dt>{escape(line.arm)}</dt><dd>{escape(line.means)}</dd>" for line in verdict.lines)
    yield "</dl>"


def _row(tag: str, words: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(word)}</{tag}>' for word in words)}</tr>"
