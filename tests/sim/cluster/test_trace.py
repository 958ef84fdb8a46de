"""A trace is read row by row, or refused with the lines of its mistakes."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.sim.cluster.given.scenario import ScenarioClass
from j10ce.sim.cluster.given.trace import Trace

CLASSES = {"web": ScenarioClass(slo=0.95, priority=7)}
EXAMPLE = Path(__file__).parents[3] / "examples/sim/trace.csv"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.csv"


def mistakes(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(Invalid) as e:
        Trace(path, CLASSES).extent()
    return [str(finding).removeprefix(str(path)) for finding in e.value.findings]


def test_the_example_is_a_trace() -> None:
    trace = Trace(EXAMPLE, {})
    classes, *extent = trace.extent()
    assert extent == [4, 60.0, 310.0]
    assert {name: of.slo for name, of in classes.items()} == {"web": 1.0, "batch": 0.9, "crawl": 0.5}
    assert [a.slo for a in trace.arrivals({"batch": 0.95})] == [1.0, 0.95, 0.5, 0.95]
    assert [(a.at, a.class_, a.slots, a.kind) for a in trace.arrivals()] == [
        (0, "web", 4, "Deployment"), (10, "batch", 2, "Job"), (12.5, "crawl", 8, "Job"), (60, "batch", 1, "Job"),
    ]  # fmt: skip


def test_what_a_row_does_not_say_is_that_of_its_class(path: Path) -> None:
    path.write_text("arrival,cpu,class,slo\n0,0.5,web,\n1,500m,web,0.5\n2,1,new,0.7\n3,1,,0.25\n")
    rows = list(Trace(path, CLASSES).arrivals())
    assert [(a.class_, a.slo, a.priority, a.price) for a in rows] == [
        ("web", 0.95, 7, 0.95), ("web", 0.5, 7, 0.5), ("new", 0.7, 0, 0.7), ("slo-0.25", 0.25, 0, 0.25),
    ]  # fmt: skip
    assert rows[0].shape == rows[1].shape
    assert rows[0].duration == math.inf


def test_every_mistake_is_named_with_its_line(path: Path) -> None:
    rows = ("5,1,abc,,,,", "4,x,0.5,,-3,0,Cron", "6,1", "7,10%,nan,,,,", "8,1,,wep,,,Job")
    text = "\n".join(("arrival,cpu,slo,class,duration,replicas,kind", *rows))
    assert mistakes(path, text) == [
        ":2 slo = 'abc': cannot be read; could not convert string to float: 'abc'",
        ":3 duration = '-3': cannot be read; write seconds from 0 to those of 366d",
        ":3 replicas = '0': cannot be read; write a whole number from 1 to 100000",
        ":3 kind = 'Cron': cannot be read; use one of Deployment, StatefulSet, Job, Pod",
        ":3 cpu = 'x': not a quantity; write a number, with a suffix or without: 500m, 1Gi, 100Mbit, 25%",
        ":3 arrival = '4.0': earlier than the row before; sort rows by arrival",
        ":4: 2 cells; write 7, as the header does",
        ":5 slo = 'nan': cannot be read; write a number from 0 to 1",
        ":5 cpu = '10%': cannot be read; write an amount, not a percentage",
        ":6 duration = '': a Job without a duration; write how long a pod of it runs",
        ":6 class = 'wep': unknown, and the row has no slo; did you mean web?",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param("", ":1 arrival: no such column", id="empty"),
        pytest.param("arrival,cpu\n", ": no row; write one for each owner", id="header alone"),
        pytest.param("arrival,cpu,cpus\n", ":1 cpus: unknown column", id="column"),
        pytest.param("arrival,cpu,cpu\n", ":1 cpu: stands twice in the header", id="column twice"),
        pytest.param('arrival,cpu\n0,"1\n', ": not CSV", id="quote"),
    ],
)
def test_what_is_no_trace_is_refused(path: Path, text: str, mistake: str) -> None:
    assert any(line.startswith(mistake) for line in mistakes(path, text))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=120) | st.text(max_size=80).map(lambda text: f"arrival,cpu,slo\n{text}".encode()))
def test_any_bytes_are_read_or_refused(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    try:
        Trace(path, CLASSES).extent()
    except Invalid:
        pass


def test_rows_do_not_pile_up(path: Path) -> None:
    with path.open("w") as file:
        file.write("arrival,cpu,duration,slo\n")
        file.writelines(f"{n},{n % 7 + 1}00m,60,0.9\n" for n in range(50_000))
    tracemalloc.start()
    try:
        assert Trace(path, {}).extent().rows == 50_000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
