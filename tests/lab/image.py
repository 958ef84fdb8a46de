"""The images of build/*.Dockerfile without an engine.

Each is three layers: this machine's Python where python:slim has its own, what the RUN line installs, and the wheel of
this clone. The first two are kept in the cache, named by what they are made of.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.deploy.dockerfiles import CLONE, FILES, run_here, stages
from tests.lab.archive import Image, archived, packed
from tests.lab.kernel import cache_dir, locked

VENV = "opt/j10ce-qos"
PREFIX = "usr/local"  # of Python, in python:slim
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
LIBRARY = f"lib/python{sysconfig.get_python_version()}"
PACKAGES = f"{VENV}/{LIBRARY}/site-packages"
UNUSED = ("test", "site-packages", "idlelib", "*tkinter*", "ensurepip", "lib2to3", "config-*", "*.opt-*")
Fill = Callable[[Path], None]  # puts files below a folder that becomes the root of a layer


def images(folder: Path, tag: str) -> Path:
    """An archive with the image of every Dockerfile, under the names that deploy/ has for them."""
    python = _kept("python", [sys.version.encode()], _interpreter)
    code = _layer(folder / "code.tar", _code)
    made = [
        Image([f"docker.io/library/j10ce-qos-{file.stem}:{tag}"], [python, _dependencies(file), code], _config(file))
        for file in FILES
    ]
    return archived(made, folder / "j10ce-qos.tar")


def _config(file: Path) -> dict[str, object]:
    last = stages(file)[-1]
    instructions = {instruction.word: instruction for instruction in last}
    env = [word.replace("$PATH", PATH) for word in instructions["ENV"].words]
    return {"Entrypoint": instructions["ENTRYPOINT"].words, "User": instructions["USER"].text, "Env": env}


# ------------------------------------------------------------------ layers


def _interpreter(root: Path) -> None:
    executable = Path(sys.executable).resolve()
    (root / PREFIX / "bin").mkdir(parents=True)
    shutil.copy2(executable, root / PREFIX / "bin/python3")
    (root / PREFIX / "bin/python").symlink_to("python3")
    library = root / PREFIX / LIBRARY
    shutil.copytree(sysconfig.get_path("stdlib"), library, symlinks=True, ignore=shutil.ignore_patterns(*UNUSED))
    _add_libraries(root, [executable, *library.glob("lib-dynload/*.so")])
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/sbin/nologin\n")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)


def _dependencies(file: Path) -> Path:
    """What the RUN line installs, but for our own package."""
    project = json.dumps(tomllib.loads((CLONE / "pyproject.toml").read_text())["project"])
    pins = (CLONE / f"requirements/{file.stem}.txt").read_bytes()
    made_of = [file.read_bytes(), project.encode(), pins, sys.version.encode()]
    return _kept(file.stem, made_of, lambda root: _install(file, root))


def _install(file: Path, root: Path) -> None:
    venv = root / VENV
    (run,) = (i for i in stages(file)[0] if i.word == "RUN")
    with tempfile.TemporaryDirectory() as scratch:
        line = run_here(run, {f"/{VENV}": venv, "/opt/build": Path(scratch)})
        subprocess.run(["sh", "-ec", line], cwd=CLONE, check=True)
    for ours in (root / PACKAGES).glob("j10ce*"):
        shutil.rmtree(ours)
    for tool in _tools(file):
        _add_tool(root, tool)
    _settle(venv)
    _add_libraries(root, venv.rglob("*.so"))


def _tools(file: Path) -> list[str]:
    """Programs of Debian that it adds to its base; this machine has them, too."""
    lines = (i.text for i in stages(file)[-1] if i.word == "RUN")
    return [word for line in lines for word in re.findall(r"--no-install-recommends (\w+)", line)]


def _add_tool(root: Path, name: str) -> None:
    here = shutil.which(name)
    assert here, f"apt-get install {name}"
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(Path(here).resolve(), root / "usr/bin" / name)
    _add_libraries(root, [Path(here)])


def _settle(venv: Path) -> None:
    """As if it had been made where it will be."""
    for link in (venv / "bin").glob("python*"):
        link.unlink()
        link.symlink_to(f"/{PREFIX}/bin/python3")
    for file in (venv / "pyvenv.cfg", *(f for f in (venv / "bin").iterdir() if not f.is_symlink())):
        text = file.read_text().replace(str(venv), f"/{VENV}")
        file.write_text(text.replace(str(Path(sys.executable).resolve().parent), f"/{PREFIX}/bin"))


def _code(root: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", scratch]
        subprocess.run(build, cwd=CLONE, check=True, capture_output=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(root / PACKAGES)
    compiled = [sys.executable, "-m", "compileall", "-q", "-s", str(root), "-p", "/", str(root)]
    subprocess.run(compiled, check=True)


def _add_libraries(root: Path, programs: Iterable[Path]) -> None:
    """What they are linked against; those beside this machine's Python go where a loader looks by itself."""
    output = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    words = (word for line in output.splitlines() for word in line.split())
    for library in {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}:
        if library.is_relative_to(root):
            continue
        beside = library.is_relative_to(sys.base_prefix) and not library.is_relative_to("/usr")
        target = root / ("usr/lib" if beside else str(library.parent)[1:]) / library.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, target)


def _layer(target: Path, fill: Fill) -> Path:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        root = Path(scratch, "root")
        root.mkdir()
        fill(root)
        packed(root, Path(scratch, "layer"))
        Path(scratch, "layer").rename(target)
    return target


def _kept(name: str, made_of: Sequence[bytes], fill: Fill) -> Path:
    home = cache_dir() / "images"
    sources = b"\0".join([Path(__file__).read_bytes(), *made_of])
    target = home / f"{name}-{hashlib.blake2b(sources, digest_size=6).hexdigest()}.tar"
    with locked(home):
        if not target.exists():
            print(f"lab: packing {target.name}", flush=True)
            _layer(target, fill)
    return target
