"""The client in docs/grpc.md works as it stands there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import blocks
from tests.manager import process
from tests.manager.grpc.test_server import address_of

TOKEN, ADDRESS = "/run/j10ce-qos/token", "127.0.0.1:7444"


def test_the_documented_client_works(tmp_path: Path) -> None:
    (block,) = [b for b in blocks() if (b.page, b.language) == ("docs/grpc.md", "python")]
    assert TOKEN in block.text
    assert ADDRESS in block.text
    manager = process.start(tmp_path, "--grpc-listen", "127.0.0.1:0")
    try:
        code = block.text.replace(TOKEN, str(tmp_path / "token")).replace(ADDRESS, address_of(manager))
        env = {"PYTHONPATH": str(process.SOURCES)}
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stderr
        uid, event = said.stdout.splitlines()
        with manager.client() as api:
            made = api.get("/apis/j10ce.io/v1alpha1/namespaces/payments/minimalreservationpolicies/db").json()
        assert uid == made["metadata"]["uid"]
        assert event.startswith("db ")
    finally:
        process.end(manager.process)
