"""The debug page and the log of departures, to the byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import pytest

from j10ce.scheduler.accounts.accounts import Accounts, Departure
from j10ce.scheduler.accounts.duration import spelled
from j10ce.scheduler.accounts.line import COLUMNS, line
from j10ce.scheduler.accounts.table import data, narrow, wide
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts

NOW = 1_790_100_000.0
OF_OLD = (
    "          CONTROLLER    QOS/SLO                   TTV               RUNNING               WAITING"
    "               BINDING\n"
    "                      1.00/0.80                 31m1s                2h4m6s                    0s"
    "                    0s\n"
    "            50_slo_1  0.44/0.50            -2m22.541s                 8m13s                10m36s"
    "                 591ms\n"
    "            50_slo_2  0.48/0.50              -34.946s                 9m22s                 9m57s"
    "                 882ms\n"
)


class Life(NamedTuple):
    name: str
    slo: str
    waiting: float
    binding: float
    running: float

    def deeds(self, accounts: Accounts) -> list[tuple[float, Callable[[float], None]]]:
        owner = OwnerFacts("Deployment", "default", self.name) if self.name else None
        annotations = {"slo": self.slo} | ({"controller": self.name} if self.name else {})
        start = NOW - self.waiting - self.binding - self.running
        bind, run = start + self.waiting, start + self.waiting + self.binding
        pod = PodFacts(
            f"uid-{self.name}", "default", f"{self.name}-pod", annotations=annotations, created=start, owner=owner
        )
        running = pod._replace(node="n1", phase="Running")
        return [
            (start, lambda now: accounts.seen(pod, now)),
            (bind, lambda now: accounts.binding(pod.uid, now)),
            (run, lambda now: accounts.seen(running, now)),
        ]


def lived(accounts: Accounts, *lives: Life) -> None:
    for at, deed in sorted((deed for life in lives for deed in life.deeds(accounts)), key=itemgetter(0)):
        deed(at)


def test_the_narrow_table_is_as_of_old() -> None:
    accounts = Accounts("classic")
    second, third = Life("50_slo_1", "0.5", 636.25, 0.5912, 493.709), Life("50_slo_2", "0.5", 597.646, 0.882, 562.7)
    lived(accounts, Life("", "0.8", 0.0, 0.0, 7446.3), second, third)
    assert narrow(accounts, NOW) == OF_OLD


def test_the_wide_table_has_a_line_for_each_slot_in_use() -> None:
    accounts = Accounts("classic")
    lived(accounts, Life("web", "0.5", 30.0, 2.0, 300.0))
    header, row = wide(accounts, NOW).splitlines()
    assert header == (
        "          CONTROLLER    QOS/SLO  PREEMPTION OVERHEAD     QOS APPROACH        POD PHASE       QOS METRIC"
        "           EFF RUNNING           DIS RUNNING               WAITING               BINDING"
    )
    assert row == (
        "               web-0  0.90/0.50       0.01/0.50               average          Running         266.0000"
        "                  5m0s                    0s                   30s                    2s"
    )


def test_the_same_as_data_is_json_whatever_the_numbers_are() -> None:
    accounts = Accounts()
    accounts.seen(PodFacts("a", "shop", "a", annotations={"slo": "0"}, created=NOW), NOW)
    plain = json.loads(json.dumps(data(accounts, NOW), allow_nan=False))
    assert plain["pods"][0]["preemptionOverhead"] == "NaN"
    assert plain["controllers"][0]["controller"] == "shop/Pod/a"


def test_a_departure_is_one_line_of_comma_separated_values() -> None:
    departures: list[Departure] = []
    accounts = Accounts("classic")
    accounts.listen(departures.append)
    lived(accounts, Life('a,"b', "0.5", 30.0, 2.0, 300.0))
    accounts.gone('uid-a,"b', NOW)
    assert line(departures[0]) == (
        '1790100000,"a,""b-pod","a,""b",0.500000,0,average,1790099668,30000,2000,300000,false,0.903614,266.000000,'
        "30000,2000,300000,0"
    )
    assert len(COLUMNS) == 17


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.9999, "999ms"),
        (1.0, "1s"),
        (61.9, "1m1s"),
        (7446.3, "2h4m6s"),
        (-142.5415, "-2m22.541s"),
        (-3600.0, "-1h0m0s"),
        (-0.0009, "0s"),
        (float("inf"), "+Inf"),
    ],
)
def test_a_duration_is_cut_towards_zero(seconds: float, text: str) -> None:
    assert spelled(seconds) == text
