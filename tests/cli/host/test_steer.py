"""explain, hold, release, arm, disarm, revert: the operator's hand, seen in the kernel's own files."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.session import Session, cgroup, eventually

pytestmark = pytest.mark.host


def quota(stack: Session, name: str) -> Path:
    """The file of cpu.max, of either cgroup version."""
    folder = cgroup("cpu", stack.json("get", "workloads", name)["status"]["cgroup"])
    return next(f for f in folder.iterdir() if f.name in ("cpu.cfs_quota_us", "cpu.max"))


def several_ticks(stack: Session) -> bool:
    """The ring has run again, and every setting has been read again."""
    begun = ticks(stack)
    return eventually(lambda: ticks(stack) > begun + 2)


def ticks(stack: Session) -> float:
    from j10ce.cli.client import Client

    lines = Client(f"unix:{stack.run_dir / 'agent.sock'}").get("/metrics").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith('j10ce_ring_runs_total{cause="tick"}'))


def test_explain_says_who_decided(stack: Session) -> None:
    stack.running("why", "--profile", "ls", "--cpu", "1", "--min-cpu", "100m")
    assert "profile ls (tier sensitive)" in stack.says("explain", "why")
    assert "cpu.max = 100000 (1 CPU" in stack.says("explain", "why", "cpu.max")
    assert "limits" in stack.says("explain", "why", "cpu.max")
    assert stack.json("explain", "why", "cpu.max")["text"]
    assert "workload/default/nobody is not on this machine" in stack.fails(6, "explain", "nobody")
    assert "unknown knob; did you mean cpu.max? use one of cpu.weight" in stack.fails(3, "explain", "why", "cpu.maxx")


def test_an_edit_under_a_hold_survives_until_it_is_released(stack: Session) -> None:
    stack.running("frozen", "--cpu", "1")
    file = quota(stack, "frozen")
    ours = file.read_text()
    output = stack.says("hold", "frozen", "cpu.max", "--for", "10m", "--why", "incident 42")
    assert output.startswith("frozen cpu.max held until ")
    file.write_text("50000")
    assert several_ticks(stack)
    assert "50000" in file.read_text()
    assert "incident 42" in stack.says("get", "holds")
    assert "incident 42" in stack.says("explain", "frozen", "cpu.max")
    assert stack.says("release", "frozen", "cpu.max") == "frozen cpu.max released\n"
    assert eventually(lambda: file.read_text() == ours)
    assert "no hold on cpu.max" in stack.fails(6, "release", "frozen", "cpu.max")
    assert "'cpu.maxx': unknown knob; did you mean cpu.max? use one of cpu.weight" in stack.fails(
        3, "release", "frozen", "cpu.maxx"
    )


def test_a_workload_is_found_by_the_name_that_run_prints(stack: Session) -> None:
    stack.running("named", "-n", "shop")
    assert stack.says("explain", "shop/named").startswith("workload/shop/named: ")
    assert "workload/default/named is not on this machine; there is shop/named" in stack.fails(6, "explain", "named")
    stack("hold", "shop/named", "cpu.max", "--why", "x")
    assert stack.says("release", "shop/named") == "shop/named cpu.max released\n"
    assert stack.says("forget", "shop/named") == "shop/named forgotten\n"


def test_a_hold_at_a_value_is_written(stack: Session) -> None:
    stack.running("fixed", "--cpu", "1")
    stack("hold", "fixed", "cpu.max", "--why", "x", "--value", "30000")
    assert eventually(lambda: "30000" in quota(stack, "fixed").read_text())


def test_a_hold_tells_the_value_that_is_really_in_force(stack: Session) -> None:
    stack.running("full", "--cpu", "1")
    ended = stack("hold", "full", "memory.max", "--why", "x", "--value", "1")
    assert "j10ce-qos hold: memory.max is " in ended.stderr
    assert ", not 1: kept at " in ended.stderr
    assert "are in use, and less would stall or kill" in ended.stderr
    stack("release", "full")
    assert "CPU 900-901 is not there; cgroups of this machine may run on 0" in stack.fails(
        5, "hold", "full", "cpuset.cpus", "--why", "x", "--value", "900-901"
    )


def test_a_hold_that_cuts_a_floor_needs_to_say_so(stack: Session) -> None:
    stack.running("promised", "--min-cpu", "500m")
    words = ("hold", "promised", "cpu.max", "--why", "x", "--value", "10000")
    output = stack.fails(5, *words)
    assert "500m" in output
    assert "--breaks-reservation" in output
    stack(*words, "--breaks-reservation")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            ["nobody", "cpu.max", "--why", "x"],
            0,
            "workload/default/nobody is not on this machine; the hold waits for one",
        ),
        (["x", "cpu.maxx", "--why", "x"], 3, "'cpu.maxx': unknown knob; did you mean cpu.max? use one of cpu.weight"),
        (["x", "cpu.max", "--why", "x", "--for", "soon"], 3, "'soon': not a duration"),
        (["x", "cpu.max", "--why", "x", "--value", "much"], 3, "not a value of cpu.max"),
        (["x", "cpu.weight", "--why", "x", "--value", "1"], 3, "cpu.weight takes 2 to 262144"),
        (["x", "cpu.max", "--why", " "], 3, "say why"),
        (["x", "cpu.max"], 2, "--why"),
        (["x"], 2, "KNOBS"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_holds_say_what_would_be_right(stack: Session, words: list[str], code: int, says: str) -> None:
    assert says in stack.fails(code, "hold", *words)


def test_a_hold_on_a_mistyped_name_says_which_was_meant_and_how_to_end_it(stack: Session) -> None:
    stack.running("steady")
    warning = stack("hold", "staedy", "cpu.max", "--why", "a slip").stderr
    assert "did you mean steady? the hold waits for one; `j10ce-qos release staedy` ends it" in warning
    assert stack.says("release", "staedy") == "staedy cpu.max released\n"


def test_the_age_of_a_hold_is_shown(stack: Session) -> None:
    stack("hold", "aged", "cpu.max", "--why", "x")
    (line,) = (line for line in stack.says("get", "holds").splitlines() if "default/aged" in line)
    assert re.search(r" \d+s$", line)
    stack("release", "aged")


def test_disarmed_an_edit_survives_and_armed_it_does_not(cli: Session) -> None:
    cli.running("crunch", "--cpu", "1")
    file = quota(cli, "crunch")
    ours = file.read_text()
    assert cli.says("disarm") == "disarmed: nothing is written; values stay as they are\n"
    assert file.read_text() == ours
    file.write_text("60000")
    assert several_ticks(cli)
    assert "60000" in file.read_text()
    assert cli.json("status")["armed"] is False
    cli("arm")
    assert eventually(lambda: file.read_text() == ours)


@pytest.mark.parametrize("killed", [False, True], ids=["through the agent", "after kill -9, without one"])
def test_revert_gives_the_exact_originals_back(cli: Session, killed: bool) -> None:
    mine = cli.own_cgroup("mine")
    folder = cgroup("cpu", mine)
    next(f for f in folder.iterdir() if f.name in ("cpu.shares", "cpu.weight")).write_text("321")
    before = contents(folder)
    up = cli.up()
    cli("adopt", "--cgroup", mine, "--name", "mine", "--profile", "be")
    cli.running("web", "--profile", "ls", "--cpu", "1")
    assert contents(folder) != before
    if killed:
        os.kill(up.pid, signal.SIGSTOP)  # it would start the agent again
        os.kill(cli.agent_pid(), signal.SIGKILL)
    output = cli.says("revert")
    assert "settings restored, 0 left alone" in output
    assert ("disarmed: nothing is written until `j10ce-qos arm`" in output) == (not killed)
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, str]:
    settings = (f for f in folder.glob("cpu.*") if not f.name.startswith(("cpu.stat", "cpu.pressure")))
    return {f.name: f.read_text() for f in settings}


def test_revert_names_what_it_leaves(cli: Session) -> None:
    mine = cli.own_cgroup("mine")
    cli.running("web", "--profile", "ls")
    cli("adopt", "--cgroup", mine, "--name", "mine", "--profile", "be")
    assert several_ticks(cli)  # what is found right after an adoption counts as its maker's own
    cli("disarm")
    (cgroup("cpu", mine) / "cpu.idle").write_text("0")
    (cgroup("cpu", mine) / "cpu.shares").write_text("555")
    output = cli.says("revert", code=1)
    assert "workload/default/mine cpu." in output, output
    assert (cgroup("cpu", mine) / "cpu.shares").read_text().strip() == "555"
    stays = output.partition("WHY IT STAYS")[2]
    assert "web" in stays
    assert stays.endswith("others with the next `j10ce-qos revert` once nothing runs in them\n")


def test_revert_with_nothing_to_revert_says_so(cli: Session) -> None:
    ended = cli("revert", code=None)
    assert "nothing to revert" in ended.stdout + ended.stderr or "0 settings restored" in ended.stdout
