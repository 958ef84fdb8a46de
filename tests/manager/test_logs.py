"""What the manager's own log tells, and what it keeps to itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from j10ce.manager.access import tokens

FAILS = """
import sys
import structlog
from j10ce.manager import logs

logs.configure(sys.argv[1], "info")

def answered(authorization: bytes, secret: str) -> None:
    raise RuntimeError("cannot answer " + sys.argv[3])

try:
    answered(b"Bearer " + sys.argv[2].encode(), sys.argv[2])
except RuntimeError:
    structlog.get_logger().exception("request.fail", path="/x/" + sys.argv[3])
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_failure_is_logged_without_the_callers_token(form: str) -> None:
    """Neither a token of ours, nor what else a caller may have shown in a header."""
    token, digest = tokens.make("alice")
    for held, said in ((token, token), ("sesame-open-now", digest)):
        done = subprocess.run(
            [sys.executable, "-c", FAILS, form, held, said], capture_output=True, text=True, check=True, timeout=60
        )
        assert "request.fail" in done.stderr
        assert "cannot answer" in done.stderr
        assert "(redacted)" in done.stderr
        assert held not in done.stderr
        assert said not in done.stderr
