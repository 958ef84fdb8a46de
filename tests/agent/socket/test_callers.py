"""Who speaks on the agent's socket, as the kernel says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

MEMBER = """import socket
from j10ce.agent.socket.serve import caller_of
with socket.socketpair()[0] as one:
    print(sorted(caller_of(one).groups))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can join groups")
@pytest.mark.parametrize("count", [1, 3, 256])
def test_a_user_is_in_a_group_that_is_not_the_first_of_its_own(python: str, clone: Path, count: int) -> None:
    """As `usermod -aG j10ce` makes it."""
    groups = [*range(70001, 70001 + count)]
    member = ["setpriv", f"--groups={','.join(map(str, groups))}", python, "-c", MEMBER]
    run = subprocess.run(member, env={"PYTHONPATH": str(clone / "src")}, capture_output=True, text=True, check=True)
    assert run.stdout == f"{groups}\n"
