"""Every command of docs/kubectl.md works, typed in order."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.docs.pages import CLONE, blocks, commands
from tests.kubectl.conftest import Kubectl
from tests.lab.debian import program
from tests.manager.process import Running


def test_the_page_can_be_typed(manager: Running, home: tuple[str, Path], kubectl: Kubectl, tmp_path: Path) -> None:
    name, folder = home
    (tmp_path / "kubectl").symlink_to(program(name))
    path = f"{tmp_path}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(folder), "KUBECONFIG": str(manager.kubeconfig)}
    lines = [line for block in blocks() if block.page == "docs/kubectl.md" for line in commands(block)]
    lines = [line for line in lines if line.startswith("kubectl ")]
    assert len(lines) >= 10
    for line in lines:
        done = subprocess.run(["bash", "-c", line], cwd=CLONE, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout, f"{line} says nothing"
