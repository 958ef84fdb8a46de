"""What every daemon needs is written once: no other module asks the kernel for it by itself."""

from __future__ import annotations

import pytest

from tests.style.sources import dotted, product

HOMES = {
    "fcntl.flock": {"daemon/lock.py"},
    "resource.setrlimit": {"daemon/descriptors.py", "host/net/bpf.py"},  # of open files; of locked memory
    "structlog.configure": {"daemon/logs.py"},
}


@pytest.mark.parametrize("call", HOMES)
def test_a_call_that_daemons_share_has_one_home(call: str) -> None:
    homes = {source.module for source in product() for node in source.calls() if dotted(node.func) == call}
    assert homes == HOMES[call]
