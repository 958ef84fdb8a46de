"""Files that carry a secret to its owner: readable by nobody else, whole or not there at all."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from j10ce.errors import Denied

MOST_BYTES: Final = 4096  # of a file with a token
VISIBLE: Final = re.compile(rb"[!-~]+")
REMOVE: Final = "remove it, and a fresh one is written"


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read; a missing file is made, with a fresh token."""
    try:
        with path.open("rb") as file:
            facts, content = os.fstat(file.fileno()), file.read(MOST_BYTES).strip()
    except FileNotFoundError:
        import secrets  # an agent writes tokens, and makes none

        token = secrets.token_urlsafe(32)
        write_private(path, token + "\n")
        return token
    except OSError as e:
        raise Denied(f"cannot read the token in {path}: {e.strerror}") from None
    if facts.st_mode & 0o077:
        mode = f"{facts.st_mode & 0o777:04o}"
        raise Denied(f"{path} may be read by others (mode {mode}); chmod 600 it and change the token")
    if facts.st_uid not in (0, os.geteuid()):
        raise Denied(f"{path} belongs to uid {facts.st_uid}, who knows the token; {REMOVE}")
    if not VISIBLE.fullmatch(content):
        raise Denied(f"{path} holds no token, which is a word of visible ASCII characters; {REMOVE}")
    return content.decode()


def write_kubeconfig(path: Path, server: str, token: str, *, ca: Path | None = None) -> None:
    """What a client needs to find us and to trust us. JSON is YAML, so kubectl reads it, too.

    kubectl sends no token over plain HTTP, which is loopback; there it gets an address that carries the token.
    """
    cluster: dict[str, Any] = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = b64encode(ca.read_bytes()).decode()
    clusters = [{"name": "j10ce", "cluster": cluster}]
    if server.startswith("http://"):
        carrying = server.replace("http://", f"http://owner:{quote(token, safe='')}@", 1)
        clusters.append({"name": "kubectl", "cluster": {"server": carrying}})
    names = [entry["name"] for entry in clusters]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": [{"name": "owner", "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "owner", "namespace": "default"}} for name in names
        ],
        "current-context": names[-1],
    }
    write_private(path, msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n")


def write_private(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Whole or not at all, there after a power cut, readable by its owner alone unless `mode` says who else."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}")  # nobody can guess it, and take it first
    _create(fresh, text.encode(), mode)
    try:
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    _keep(path.parent)


def create_private(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """On disk when it returns; one that is there already stays, and raises FileExistsError."""
    _create(path, data, mode)
    _keep(path.parent)


def _create(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _keep(folder: Path) -> None:
    """The names of its files, too, are on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
