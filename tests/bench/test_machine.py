from __future__ import annotations

import os
import subprocess

from j10ce.bench import machine


def test_a_process_has_its_children_and_theirs_in_its_family() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        grandchild = int(shell.stdout.readline())
        known = machine.family(os.getpid())
        os.kill(grandchild, 15)
        shell.terminate()
    assert {os.getpid(), shell.pid, grandchild} <= {*known}


def test_one_that_is_gone_has_used_nothing_and_is_alone() -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    assert machine.cpu_s([gone.pid]) == machine.memory_mib(gone.pid) == 0
    assert machine.family(gone.pid) == [gone.pid]


def test_the_machine_has_spent_more_the_next_time() -> None:
    before = machine.spent()
    assert sum(machine.spent()) >= sum(before) > 0
