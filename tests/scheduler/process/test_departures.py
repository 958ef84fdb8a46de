"""The log of pods that have left their slots."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from j10ce.errors import Denied
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.line import COLUMNS
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.process.departures import DepartureLog


def leave(accounts: Accounts, uid: str) -> None:
    pod = PodFacts(uid, "shop", f"web,{uid}", created=0.0)
    accounts.seen(pod, 0.0)
    accounts.seen(pod._replace(node="a", phase="Running", started=2.0), 2.0)
    accounts.gone(uid, 12.0)


def test_each_pod_that_leaves_is_one_row_below_one_heading(tmp_path: Path) -> None:
    for uid in ("1", "2"):  # as if restarted between them
        accounts = Accounts()
        accounts.listen(DepartureLog(tmp_path / "qos.csv").departed)
        leave(accounts, uid)
    with (tmp_path / "qos.csv").open() as file:
        heading, *rows = csv.reader(file)
    assert tuple(heading) == COLUMNS
    assert [row[1] for row in rows] == ["web,1", "web,2"]
    assert {len(row) for row in rows} == {len(COLUMNS)}


def test_others_do_not_read_it_and_no_link_leads_elsewhere(tmp_path: Path) -> None:
    DepartureLog(tmp_path / "qos.csv")
    assert (tmp_path / "qos.csv").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Denied, match="--qos-log"):
        DepartureLog(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    log, accounts = DepartureLog(tmp_path / "qos.csv"), Accounts()
    with Path("/dev/full").open("wb", buffering=0) as full:
        os.dup2(full.fileno(), log.descriptor)
    accounts.listen(log.departed)
    leave(accounts, "1")
    assert accounts.of("1") is None
    assert (tmp_path / "qos.csv").read_text().splitlines() == [",".join(COLUMNS)]
