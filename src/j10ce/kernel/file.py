"""Reading and writing kernel files: one write function, whose refusal carries the value."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Final

from j10ce.errors import Denied
from j10ce.model.plan import Gone, Refused

_ABSENT: Final = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR})
_HINTS: Final = {
    errno.EINVAL: "the value does not fit this cgroup or its parent",
    errno.EBUSY: "the cgroup or one below it is in use",
    errno.ENOSPC: "a cpuset needs at least one CPU and one memory node",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "it needs root or a delegated cgroup",
    errno.EPERM: "it needs root or a delegated cgroup",
    errno.ERANGE: "the value is out of range",
    errno.EOPNOTSUPP: "the cgroup is of a type that cannot hold it",
    errno.ESRCH: "there is no such process",
}


def read(path: str) -> str | None:
    """The content without surrounding blanks; None when the file, its cgroup or its process is not there."""
    text = whole(path)
    return None if text is None else text.strip()


def whole(path: str) -> str | None:
    """The same with every blank, one of which may end the name of a cgroup. Lines end with a line feed and nothing else
    that `splitlines` knows: the names of cgroups and processes may hold all of those.

    A process may call itself anything, and the kernel cuts names inside a character.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return os.read(fd, 1 << 16).decode(errors="replace")
        finally:
            os.close(fd)
    except OSError as e:
        if e.errno in _ABSENT or e.errno == errno.ESRCH:  # a process that ended after its file was opened
            return None
        raise Denied(f"cannot read {path}: kernel said {_name(e)}") from e


def write(path: str, text: str) -> Refused | Gone | None:
    """None: the kernel took it. May block while memory is reclaimed."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(fd, f"{text}\n".encode())  # the newline lets an empty set reach the kernel
        finally:
            os.close(fd)
    except OSError as e:
        return refusal(path, text, e)
    return None


def settle(directory: str, wanted: Mapping[str, str]) -> Refused | Gone | None:
    """Write files that constrain each other in an order that the kernel accepts: all of them, or none.

    Quota and period, limit and limit with swap, a cpuset and those below it: which one must move first depends on
    the direction. So whatever is refused is tried again as long as another write succeeded.
    """
    if len(wanted) == 1:
        ((name, text),) = wanted.items()
        return write(f"{directory}/{name}", text)
    before = {name: read(f"{directory}/{name}") for name in wanted}
    todo = dict(wanted)
    while todo:
        results = {name: write(f"{directory}/{name}", text) for name, text in todo.items()}
        failed = {name: result for name, result in results.items() if result is not None}
        if len(failed) == len(todo):
            _undo(directory, {name: before[name] for name in wanted if name not in todo})
            return next(iter(failed.values()))
        todo = {name: todo[name] for name in failed}
    return None


def refusal(path: str, text: str, e: OSError) -> Refused | Gone:
    directory, name = os.path.split(path)
    if e.errno in _ABSENT and not os.path.isdir(directory):
        return Gone()
    if e.errno == errno.ENOENT:
        return Refused(f"cannot write {name} = {text!r}: {directory} has no such file; its controller is not enabled")
    hint = _HINTS.get(e.errno or 0, os.strerror(e.errno or 0))
    return Refused(f"cannot write {name} = {text!r} to {directory}: kernel said {_name(e)}; {hint}")


def _undo(directory: str, before: Mapping[str, str | None]) -> None:
    """Half a change could be worse than none (a period without its quota)."""
    present = {name: text for name, text in before.items() if text is not None}
    for _ in present:
        refused = [write(f"{directory}/{name}", text) for name, text in present.items()]
        if not any(refused):
            return


def _name(e: OSError) -> str:
    return errno.errorcode.get(e.errno or 0, str(e.errno))
