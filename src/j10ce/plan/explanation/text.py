"""An explanation as people read it in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from j10ce.model.text.cells import shown
from j10ce.plan.explanation.explain import Above, Explanation, SettingExplanation, Wish

ARITHMETIC: Final = re.compile(r": [0-9]+ of [0-9]+ shares is .*$")


def render_text(e: Explanation, *, wide: bool = False) -> str:
    """`wide`: with the arithmetic of every value, and with what is done instead of what this machine lacks."""
    lines = chain.from_iterable(_detail(e, s) for s in e.settings) if e.knob else _overview(e, wide)
    return "\n".join(shown(line.rstrip()) for line in lines)


def _overview(e: Explanation, wide: bool) -> Iterator[str]:
    yield from e.summary.splitlines()
    profile = f"profile {e.profile} (tier {e.tier})" if e.profile else "no profile"
    yield f"{e.target}: {profile if e.tier else 'a group of the tree'}, cgroup {e.cgroup or '/'}"
    yield from _fields(
        ("floor", e.floor),
        *(("from", source) for source in e.sources),
        ("effective", e.effective if wide else _once(e)),
        ("protected", e.protected),
        *(("note", note) for note in e.notes),
        *(("now", deed) for deed in e.deeds),
    )
    rows = [
        (s.knob, _value(s), _reason(s) if wide else ARITHMETIC.sub("", _reason(s))) for s in e.settings if not s.problem
    ]
    yield ""
    if not rows:
        yield "  nobody asks for anything here"
    yield from _table([("KNOB", "VALUE", "WHY"), *rows] if rows else [])
    yield from _unavailable(e.settings, wide)


def _once(e: Explanation) -> str:
    """Why the floor does not hold; what this machine lacks for it is said below, once."""
    text = e.effective
    for s in e.settings:
        text = text.replace(s.problem, "not enforceable here") if s.problem else text
    return text


def _value(s: SettingExplanation) -> str:
    now = s.now or "?"
    return f"{now} → {s.planned}" if s.planned and s.planned != s.now else now


def _reason(s: SettingExplanation) -> str:
    if s.held:
        return f"held {s.held}"
    if s.clamps:
        return s.clamps[-1]
    return f"{s.winner.owner}: {s.winner.reason}" if s.winner else "as the kernel made it"


def _unavailable(settings: Iterable[SettingExplanation], wide: bool) -> Iterator[str]:
    """What this machine lacks: one line per need, not per knob."""
    by_need: dict[str, list[tuple[str, str]]] = {}
    for s in settings:
        if s.lacks:
            by_need.setdefault(s.lacks, []).append((s.knob, s.instead))
    for need, knobs in by_need.items():
        done = dict.fromkeys(instead for _, instead in knobs if instead)
        more = f"; instead: {', or '.join(done)}" if wide and done else ""
        yield f"  {', '.join(knob for knob, _ in knobs)}: {need}{more}"
    if by_need and not wide:
        yield "  `j10ce-qos doctor` says what is done instead"


def _detail(e: Explanation, s: SettingExplanation) -> Iterator[str]:
    yield f"{e.target} {s.knob} = {_value(s)}"
    where = "; ".join(filter(None, [_files(s), f"here through {s.via}" if s.via else ""]))
    yield f"  {s.meaning}{f' ({where})' if where else ''}"
    nobody = "" if s.winner or s.clamps or s.problem or s.held else "nobody asks for it"
    yield from _fields(
        ("problem", s.problem),
        ("held", s.held),
        ("decided by", _wish(s.winner) if s.winner else nobody),
        *(("then", clamp) for clamp in s.clamps),
        *(("against", _wish(w)) for w in s.losers),
        ("before us", s.original),
        *(("note", note) for note in e.notes if note.startswith(f"{s.knob}: ")),
        *(("above it", _above(a)) for a in s.above),
    )


def _files(s: SettingExplanation) -> str:
    """What it is called in cgroups; empty for what is no file of theirs."""
    if not s.v2:
        return f"{s.v1} on cgroup v1, not on v2" if s.v1 else ""
    return f"{s.v2} on cgroup v2, {f'{s.v1} on v1' if s.v1 else 'not on v1'}"


def _above(a: Above) -> str:
    return f"{a.target} {a.value}{'' if a.ours else ' (not ours)'}{f' ({a.why})' if a.why else ''}"


def _wish(w: Wish) -> str:
    return f"{w.owner} ({w.rank}) {w.bound} {w.value}: {w.reason}"


def _fields(*fields: tuple[str, str]) -> Iterator[str]:
    """Empty ones are left out; a repeated name is said once."""
    last = ""
    for name, text in fields:
        if text:
            yield f"  {'' if name == last else name:<11} {text}"
            last = name


def _table(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
    return (f"  {knob:<{widths[0]}}  {value:<{widths[1]}}  {why}" for knob, value, why in rows)
