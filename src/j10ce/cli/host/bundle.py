"""bundle: all that a bug report needs, without secrets."""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from j10ce import __version__
from j10ce.cli.host.doctor import examine
from j10ce.cli.output import say
from j10ce.cli.peers import Peers
from j10ce.errors import QosError
from j10ce.model.text.secrets import redact

ASKED = ("status", "workloads", "doctor", "holds", "journal", "drift", "top")
KINDS_KEPT = ("qosprofiles", "minimalreservationpolicies", "nodestrategies", "nodeqoses", "holds")
FILES = ("/proc/version", "/proc/cmdline", "/proc/mounts", "/proc/cgroups", "/proc/meminfo", "/etc/os-release")
LOGS = ("agent.log", "manager.log")
KEPT_LOG_BYTES = 1 << 20


@click.command("bundle")
@click.option(
    "--output", "-o", "-O", default="j10ce-qos-bundle.tar.gz", show_default=True, type=click.Path(path_type=Path)
)
@click.pass_obj
def bundle_command(peers: Peers, output: Path) -> None:
    """Collect what a bug report needs into one archive, without secrets.

    \b
    Example:
      j10ce-qos bundle
    """
    names = []
    with fresh(output) as raw, tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, text in _contents(peers):
            data = redact(text).encode()
            info = tarfile.TarInfo(f"j10ce-qos-bundle/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            names.append(name)
    say(f"{output}: {len(names)} files, secrets removed; read it before you send it")


@contextmanager
def fresh(output: Path) -> Iterator[BinaryIO]:
    """A file of our own, readable by us alone, that takes the name when it is whole: whoever made one there before
    keeps nothing of it."""
    try:
        fd, draft = tempfile.mkstemp(prefix=f".{output.name}-", dir=output.parent)
    except OSError as e:  # of a name that nobody typed, or of none: the folder we are in may be gone
        raise QosError(f"{output}: {e.strerror}; name a file in a folder that is there with --output") from e
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
        os.replace(draft, output)
    except BaseException:
        os.unlink(draft)
        raise


def _contents(peers: Peers) -> Iterator[tuple[str, str]]:
    yield "version.txt", f"j10ce-qos {__version__}\npython {platform.python_version()}\n{platform.platform()}\n"
    for name in FILES:
        yield "host" + name, _read(Path(name))
    for what in ASKED:
        yield f"agent/{what}.json", _asked(lambda what=what: peers.agent().get(f"/v1/{what}"))
    yield "doctor.json", _asked(examine)
    for plural in KINDS_KEPT:
        yield f"api/{plural}.json", _asked(lambda plural=plural: peers.api().get(f"/apis/j10ce.io/v1alpha1/{plural}"))
    for name in LOGS:
        yield f"logs/{name}", _read(peers.dirs.run / name)
    for file in sorted(peers.dirs.config.glob("*.yaml")):
        yield f"config/{file.name}", _read(file)


def _asked(question: Any) -> str:
    """The answer, or the error in its place: a bundle of a broken host is the one that matters."""
    try:
        return json.dumps(question(), indent=2)
    except (QosError, OSError) as e:
        return f"not available: {e}\n"


def _read(path: Path) -> str:
    try:
        return path.read_bytes()[-KEPT_LOG_BYTES:].decode(errors="replace")
    except OSError as e:
        return f"not available: {e}\n"
