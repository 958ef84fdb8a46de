"""Starting processes of ours: neither the folder nor the environment of whoever types decides what code they run."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from typing import Final

FOLDER: Final = "/"  # every child's working directory
# Where commands are looked up, whatever PATH the caller has.
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
# Places, addresses and language; nothing that an interpreter, a loader or a library takes code from.
PASSED_ON: Final = (
    "J10CE_", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "DBUS_", "LANG", "LC_", "TZ", "OTEL_EXPORTER_", "OTEL_SDK_DISABLED",
)  # fmt: skip


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours. `-P`: the working directory is not searched for modules."""
    quiet = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-P", *quiet, "-m", module, *arguments]


def environ(given: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a child may know; its home is the user's own, not the one that HOME names."""
    kept = {name: value for name, value in given.items() if name.startswith(PASSED_ON)}
    return kept | {"PATH": PATH, "HOME": _home()}


def search_path() -> list[str]:
    """Where this process looks for modules, without what depends on the folder that it was started in."""
    return [folder for folder in sys.path if os.path.isabs(folder)]


def _home() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a container's user may have no entry
        return "/nonexistent"
