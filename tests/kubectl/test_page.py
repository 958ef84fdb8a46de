"""Every command of docs/kubectl.md works, typed in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import type_kubectl
from tests.lab.debian import program
from tests.manager.process import Running

pytestmark = pytest.mark.lab


def test_the_page_can_be_typed(manager: Running, home: tuple[str, Path], tmp_path: Path) -> None:
    assert type_kubectl("docs/kubectl.md", program(home[0]), manager.kubeconfig, tmp_path) >= 10
