"""Traces: one owner in each row of a CSV file, by time. Rows are read as they are needed: a million take no memory.

arrival    seconds since the trace began, or as 1h30m; rows stand in this order             (required)
cpu        of one pod: 0.5, 500m                                                            (required)
memory     of one pod: 512Mi; without it none is asked for
duration   how long a pod of a Job runs; how long any other owner stays; empty: to the end
class      a class of the scenario, or any word where `slo` is given
slo        from 0 to 1; empty: that of the class
priority   empty: that of the class
replicas   pods at a time; empty: 1
completions  of a Job; empty: as many as replicas
kind       Deployment, StatefulSet, Job, Pod; empty: Job with a duration, else Deployment
name       empty: row-N
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args

from j10ce.errors import MOST_FINDINGS, Finding, Invalid
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.text.near import near, one_of
from j10ce.sim.cluster.given.arrivals import CONTROLLER, Arrival, promised_anew, shape
from j10ce.sim.cluster.given.limits import LONGEST_S, MOST_OWNERS, MOST_REPLICAS
from j10ce.sim.cluster.given.scenario import Kind, ScenarioClass

T = TypeVar("T")
COLUMNS: Final = (
    "arrival", "cpu", "memory", "duration", "class", "slo", "priority", "replicas", "completions", "kind", "name",
)  # fmt: skip
REQUIRED: Final = ("arrival", "cpu")
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MOST_CLASSES: Final = 100
DEFAULT_SLO: Final = 0.8


class Extent(NamedTuple):
    classes: Mapping[str, ScenarioClass]  # of the scenario, and those that only rows name
    rows: int
    last: float  # arrival
    end: float  # when the last one that has an end is over, if nobody ever waits


class Trace:
    """Rows are read anew for each run. Raises Invalid for what no row can be read of."""

    def __init__(self, path: Path, classes: Mapping[str, ScenarioClass]) -> None:
        self.path, self._classes = path, classes

    def extent(self) -> Extent:
        """Of a file without a mistake; raises Invalid with the first fifty."""
        findings = list[Finding]()
        rows, last, end, classes = 0, 0.0, 0.0, dict(self._classes)
        for arrival in self._rows(findings):
            rows, last = rows + 1, arrival.at
            end = max(end, arrival.at + (arrival.duration if arrival.duration < math.inf else 0.0))
            if arrival.class_ not in classes:
                classes[arrival.class_] = ScenarioClass(slo=arrival.slo, priority=arrival.priority)
            if len(classes) > MOST_CLASSES:
                findings.append(self._finding(arrival.number + 2, "class", arrival.class_, "too many classes", ""))
            if len(findings) > MOST_FINDINGS:
                break
        if not rows and not findings:
            findings.append(Finding(str(self.path), None, "no row", "write one for each owner"))
        if findings:
            raise Invalid(findings, "trace")
        return Extent(classes, rows, last, end)

    def arrivals(self, promised: Mapping[str, float] = {}) -> Iterator[Arrival]:
        """Of a file that `extent` has read. `promised`: classes whose SLO is another one than rows say."""
        findings = list[Finding]()
        for arrival in self._rows(findings):
            if findings:
                break
            yield promised_anew(arrival, promised)
        if findings:
            raise Invalid(findings, "trace")

    def _rows(self, findings: list[Finding]) -> Iterator[Arrival]:
        """Those that can be read; what is wrong goes to `findings`."""
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                lines = csv.reader(file, strict=True)
                header = self._header(next(lines, []), findings)
                if not findings:
                    yield from self._read(lines, header, findings)
        except (UnicodeDecodeError, csv.Error) as e:
            findings.append(Finding(str(self.path), None, f"not CSV: {e}", "write UTF-8 text with commas"))

    def _header(self, names: list[str], findings: list[Finding]) -> list[str]:
        header = [name.strip() for name in names]
        for name in header:
            if name not in COLUMNS:
                findings.append(self._finding(1, name, None, "unknown column", one_of(name, COLUMNS)))
            elif header.count(name) > 1:
                findings.append(self._finding(1, name, None, "stands twice in the header", "write it once"))
        lacking = [name for name in REQUIRED if name not in header]
        findings.extend(self._finding(1, name, None, "no such column", "it is required") for name in lacking)
        return header

    def _read(self, lines: Any, header: list[str], findings: list[Finding]) -> Iterator[Arrival]:
        """`lines` is a reader, which knows the number of its line."""
        last = 0.0
        for number, cells in enumerate(lines):
            if not cells:
                continue
            if len(cells) != len(header):
                hint = f"write {len(header)}, as the header does"
                findings.append(self._finding(lines.line_num, "", None, f"{len(cells)} cells", hint))
                continue
            wrong = list[tuple[str, str, str, str]]()
            arrival = self._arrival(number, dict(zip(header, cells, strict=True)), wrong)
            if arrival.at < last:
                wrong.append(("arrival", str(arrival.at), "earlier than the row before", "sort rows by arrival"))
            findings.extend(self._finding(lines.line_num, *mistake) for mistake in wrong)
            last = max(last, arrival.at)
            if not wrong:
                yield arrival
            if number >= MOST_OWNERS:
                findings.append(self._finding(lines.line_num, "", None, "too many rows", f"at most {MOST_OWNERS}"))
                return

    def _arrival(self, number: int, row: dict[str, str], wrong: list[tuple[str, str, str, str]]) -> Arrival:
        read = partial(_cell, row, wrong)
        duration = read("duration", _seconds, math.inf)
        replicas = read("replicas", _count, 1)
        usual: Kind = "Job" if duration < math.inf else "Deployment"
        kind: Kind = read("kind", _kind, usual)
        if kind == "Job" and duration == math.inf:
            wrong.append(("duration", "", "a Job without a duration", "write how long a pod of it runs"))
        class_, of = self._class_of(row, read, wrong)
        slo = read("slo", _share, of.slo)
        name = row.get("name") or f"row-{number + 1}"
        return Arrival(
            at=read("arrival", _seconds, 0.0),
            number=number,
            name=name,
            class_=class_,
            shape=_shape(read("cpu", _millicores, 0), read("memory", _bytes, 0)),
            slo=slo,
            priority=read("priority", _priority, of.priority),
            price=of.price if isinstance(of.price, float | int) else slo,
            kind=kind,
            slots=replicas,
            completions=read("completions", _count, replicas),
            duration=duration,
            annotations={CONTROLLER: name},
        )

    def _class_of(
        self, row: dict[str, str], read: Callable[[str, Callable[[str], float], float], float], wrong: list[Any]
    ) -> tuple[str, ScenarioClass]:
        name = row.get("class", "").strip()
        if name in self._classes:
            return name, self._classes[name]
        if name and not row.get("slo", "").strip():
            meant = near(name, self._classes)
            hint = f"did you mean {meant}?" if meant else "give the row an slo, or the scenario that class"
            wrong.append(("class", name, "unknown, and the row has no slo", hint))
        slo = read("slo", _share, DEFAULT_SLO)
        return name or f"slo-{slo:g}", ScenarioClass(slo=slo)

    def _finding(self, line: int, column: str, value: str | None, problem: str, hint: str) -> Finding:
        return Finding(f"{self.path}:{line} {column}".rstrip(), value, problem, hint)


def _cell(
    row: dict[str, str], wrong: list[tuple[str, str, str, str]], name: str, read: Callable[[str], T], default: T
) -> T:
    """`default` for what is not there, and for what cannot be read."""
    text = row.get(name, "").strip()
    if not text and name not in REQUIRED:
        return default
    try:
        return read(text)
    except Invalid as e:
        problem, hint = e.findings[0].problem, e.findings[0].hint
    except ValueError as e:
        problem, hint = "cannot be read", str(e)
    if (mistake := (name, text, problem, hint)) not in wrong:
        wrong.append(mistake)
    return default


@lru_cache(4096)
def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = Duration.parse(text).seconds
    if not 0 <= seconds <= LONGEST_S:
        raise ValueError("write seconds from 0 to those of 366d")
    return seconds


@lru_cache(4096)
def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError("write a number from 0 to 1")
    return value


def _millicores(text: str) -> int:
    return _absolute(text).millicores()


def _bytes(text: str) -> int:
    return _absolute(text).bytes()


def _absolute(text: str) -> Quantity:
    amount = Quantity.parse(text)
    if amount.percent:
        raise ValueError("write an amount, not a percentage")
    return amount


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST_REPLICAS or len(text) > 9:
        raise ValueError(f"write a whole number from 1 to {MOST_REPLICAS}")
    return int(text)


def _priority(text: str) -> int:
    if len(text) > 11:
        raise ValueError("write a whole number of 32 bits")
    return int(text)


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if text == kind:
            return kind
    raise ValueError(one_of(text, KINDS))


_shape = lru_cache(4096)(shape)
