"""Stock kubectls, an old and a current one, and the manager they talk to over loopback with its own kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.manager import process
from tests.manager.process import Running


@pytest.fixture(scope="package")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("manager")
    running = process.start(folder)
    yield running
    process.end(running.process)


@pytest.fixture(scope="package", params=["kubectl-old", "kubectl"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, tmp_path_factory.mktemp(request.param)


@pytest.fixture
def kubectl(request: pytest.FixtureRequest, manager: Running, home: tuple[str, Path]) -> Kubectl:
    """Every test has a namespace of its own; nobody has to make it first."""
    name, folder = home
    namespace = f"{name}-{abs(hash(request.node.name)) % 10**8}"
    return Kubectl(program(name), manager.kubeconfig, folder, namespace)
