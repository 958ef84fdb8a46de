"""Credential plugins of kubeconfig files, run as kubectl runs them: client.authentication.k8s.io/v1 and v1beta1.

The kubeconfig names a program; the program prints who the caller is. No shell is involved, and the folder that the
caller happens to be in decides nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from j10ce.errors import Denied, Finding, Invalid, Unsupported

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
EARLY_S: Final = 60.0  # a credential is fetched anew so long before it ends
LONGEST_S: Final = 120.0  # a person may have to say yes somewhere
MOST_WORDS: Final = 200  # characters of a plugin's words in a message


class Variable(Struct, frozen=True):
    name: str
    value: str = ""


class Exec(Struct, frozen=True, rename="camel"):
    """The section `exec` of a user."""

    command: str
    api_version: str
    args: tuple[str, ...] | None = ()
    env: tuple[Variable, ...] | None = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class Given(Struct, frozen=True, rename="camel"):
    """What a plugin answers."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: Given = field(default_factory=Given)


class ClusterCredential(NamedTuple):
    token: str = ""
    certificate: str = ""  # PEM
    key: str = ""
    expires: float | None = None  # seconds since 1970; None: as long as this process lives


class ExecPlugin:
    """One of a kubeconfig; asks again when what it was given ends. Used from one thread at a time."""

    def __init__(self, entry: Exec, folder: Path, cluster: Mapping[str, Any], wall: Callable[[], float]) -> None:
        """`folder` is the kubeconfig's: a command with a slash in it is looked for from there."""
        self._exec, self._folder, self._cluster, self._wall = entry, folder, cluster, wall
        self._held: ClusterCredential | None = None

    @property
    def due(self) -> bool:
        """Whether the next `credential` runs the plugin."""
        held = self._held
        return held is None or (held.expires is not None and self._wall() >= held.expires - EARLY_S)

    def forget(self) -> None:
        """The server refused what it was shown."""
        self._held = None

    def credential(self) -> ClusterCredential:
        """Blocks while the plugin runs. Raises Denied for one that fails, and Unsupported where there is none."""
        if self.due or self._held is None:
            self._held = _read(self._run(), self._exec)
        return self._held

    def _run(self) -> bytes:
        entry, interactive = self._exec, self._interactive()
        spec = {"interactive": interactive} | ({"cluster": self._cluster} if entry.provide_cluster_info else {})
        info = {"apiVersion": entry.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in entry.env or ()}
        environ = {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            done = subprocess.run(
                [self._program(), *(entry.args or ())],
                env=environ,
                cwd=self._folder,  # whose owner names the program anyway; not the folder that somebody types in
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Denied(f"the credential plugin {entry.command} gave no answer within {LONGEST_S:g} s") from None
        except OSError as e:
            raise Denied(f"cannot run the credential plugin {entry.command}: {e.strerror}") from None
        if done.returncode:
            raise Denied(f"the credential plugin {entry.command} failed with code {done.returncode}")
        return done.stdout

    def _program(self) -> str:
        command = self._exec.command
        if "/" in command:
            return str(self._folder.absolute() / command)
        program = shutil.which(command)
        if not program:
            hint = self._exec.install_hint.strip() or f"{command} on your PATH"
            raise Unsupported(f"the credential plugin {command}", needs=hint)
        if not os.path.isabs(program):  # PATH names the current folder
            raise Denied(f"{command} was found in the current folder; write its path into the kubeconfig")
        return program

    def _interactive(self) -> bool:
        mode, terminal = self._exec.interactive_mode, sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not terminal:
            raise Denied(f"the credential plugin {self._exec.command} needs a terminal to ask on")
        return terminal and mode != "Never"


def plugin_of(data: Any, where: str, folder: Path, cluster: Mapping[str, Any], wall: Callable[[], float]) -> ExecPlugin:
    """Of the section `exec`; raises Invalid and Unsupported."""
    try:
        made = msgspec.convert(data, Exec)
    except msgspec.ValidationError as e:
        raise Invalid([Finding(where, None, f"exec: {e}", "write it anew")], "kubeconfig") from None
    if made.api_version not in VERSIONS:
        raise Unsupported(
            f"apiVersion {made.api_version[:MOST_WORDS]!r} of the exec plugin in {where}",
            needs=" or ".join(VERSIONS),
        )
    if made.interactive_mode not in ("Never", "IfAvailable", "Always"):
        mode = made.interactive_mode[:MOST_WORDS]
        hint = "use Never, IfAvailable or Always"
        raise Invalid([Finding(f"{where}: exec.interactiveMode", mode, "unknown", hint)], "kubeconfig")
    return ExecPlugin(made, folder, cluster, wall)


def _read(text: bytes, entry: Exec) -> ClusterCredential:
    try:
        answer = msgspec.json.decode(text, type=ExecCredential)
    except msgspec.MsgspecError as e:
        raise Denied(
            f"the credential plugin {entry.command} printed no ExecCredential: {str(e)[:MOST_WORDS]}"
        ) from None
    given = answer.status
    if (answer.kind, answer.api_version) != ("ExecCredential", entry.api_version):
        said = f"{answer.kind} {answer.api_version}"[:MOST_WORDS]
        raise Denied(f"the credential plugin {entry.command} printed {said!r} instead of {entry.api_version}")
    if bool(given.client_certificate_data) != bool(given.client_key_data):
        raise Denied(f"the credential plugin {entry.command} gave a certificate without its key, or a key alone")
    if not given.token and not given.client_key_data:
        raise Denied(f"the credential plugin {entry.command} gave neither a token nor a certificate")
    ends = given.expiration_timestamp
    return ClusterCredential(
        given.token, given.client_certificate_data, given.client_key_data, ends.timestamp() if ends else None
    )
