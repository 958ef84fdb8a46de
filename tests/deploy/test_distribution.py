"""Wheel and sdist hold what is needed, and what an image installs of them runs."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy.dockerfiles import CLONE, FILES, program, run_here, stages
from tests.deploy.test_pins import pins

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make build` makes."""
    made = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", made], cwd=CLONE, check=True, capture_output=True)
    return made


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=CLONE, capture_output=True, text=True, check=True).stdout
    return set(listed.split())


def test_the_wheel_is_the_package_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if not name.startswith("j10ce_qos-")}
    assert {f"src/{name}" for name in package} >= tracked("src")
    assert {"j10ce/py.typed", "j10ce/manager/grpc/proto/j10ce/v1alpha1/services.proto"} <= package
    assert {name.split("/")[0] for name in package} == {"j10ce"}
    assert not [name for name in names if "__pycache__" in name or "/test_" in name]
    assert [name for name in names if name.endswith(".data/data/share/man/man1/j10ce-qos.1")], "man j10ce-qos"


def test_the_sdist_can_be_worked_with(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("src", "tests", "tools", "config", "deploy", "build", "docs", "examples", "requirements"):
        assert tracked(folder) <= names, folder
    assert {"Makefile", "LICENSE", "README.md", "pyproject.toml", "CHANGELOG.md"} <= names


@pytest.fixture(scope="module", params=[pytest.param(file, id=file.stem) for file in FILES])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """(program, venv): what a Dockerfile installs, installed once for all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"image-{request.param.stem}"
    folder.mkdir(exist_ok=True)
    venv = folder / "j10ce-qos"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not venv.exists():
            install(request.param, venv)
    return program(request.param), venv


def install(dockerfile: Path, venv: Path) -> None:
    """Its RUN line, run here; what is run once need not be compiled."""
    (run,) = (i for i in stages(dockerfile)[0] if i.word == "RUN")
    assert "/opt/j10ce-qos" in run.text
    line = run_here(run, {"/opt/j10ce-qos": venv, "/opt/build": venv.parent / "build"})
    env = os.environ | {"PIP_NO_COMPILE": "1"}
    done = subprocess.run(["sh", "-ec", line], cwd=CLONE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_image_has_pinned_packages_alone(image: tuple[str, Path]) -> None:
    _, venv = image
    pinned = {f"{name}=={version}" for name, version in pins("dev").items()}
    (packages,) = venv.glob("lib/python*/site-packages")
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", venv / "bin/python", "freeze"],
        capture_output=True,
        text=True,
        check=True,
    )
    foreign = [
        line for line in listed.stdout.lower().replace("_", "-").split("\n") if "==" in line and line not in pinned
    ]
    assert foreign == []
    assert not (packages / "pip").exists()
    assert not (packages / "rich").exists(), "structlog would import it"


def test_what_an_image_runs_starts_and_ends(image: tuple[str, Path], tmp_path: Path) -> None:
    name, venv = image
    if name == "j10ce-qos-scheduler":
        waits_for_an_api_server(venv / "bin" / name, tmp_path)
        return
    started = {
        "j10ce-qos-agent": ["--unarmed"],
        "j10ce-qos-controller-manager": [
            "--store",
            "memory:",
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            f"{tmp_path}/token",
        ],
    }
    with running(venv / "bin" / name, started[name], tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def waits_for_an_api_server(executable: Path, box: Path) -> None:
    """It has nothing to do before there is one, and ends all the same."""
    cluster = {"name": "lab", "cluster": {"server": "https://127.0.0.1:9"}}
    context = {"name": "lab", "context": {"cluster": "lab", "user": "lab"}}
    user = {"name": "lab", "user": {"token": "none"}}
    config = {"current-context": "lab", "clusters": [cluster], "contexts": [context], "users": [user]}
    (box / "kubeconfig").write_text(json.dumps(config))
    argv = [executable, "--kubeconfig", str(box / "kubeconfig"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, env={"HOME": str(box)}, cwd=box, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any("api.away" in line for line in process.stderr), "it ended"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@contextmanager
def running(executable: Path, arguments: list[str], box: Path) -> Iterator[subprocess.Popen[str]]:
    """Started, and ready as it tells systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(box / "notify"))
        notify.settimeout(60)
        dirs = {f"J10CE_{what}_DIR": str(box / what.lower()) for what in ("RUN", "STATE", "CONFIG")}
        env = {
            "HOME": str(box),
            "PATH": os.defpath,
            "NOTIFY_SOCKET": str(box / "notify"),
            "J10CE_TOP": "j10ceimage",
            **dirs,
        }
        with subprocess.Popen([executable, *arguments], env=env, cwd=box, text=True) as process:
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
                yield process
            finally:
                process.kill()


def test_an_image_can_talk_to_kubernetes(image: tuple[str, Path]) -> None:
    name, venv = image
    module = {
        "j10ce-qos-agent": "j10ce.agent.sync.kube_node",
        "j10ce-qos-controller-manager": "j10ce.manager.kube_plane",
        "j10ce-qos-scheduler": "j10ce.scheduler.process.main",
    }
    subprocess.run([venv / "bin/python", "-c", f"import {module[name]}"], env={"HOME": "/"}, cwd="/", check=True)
