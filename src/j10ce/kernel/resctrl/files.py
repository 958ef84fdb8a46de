"""The resctrl file system: folders are groups. Its refusals carry the kernel's own words (`info/last_cmd_status`)."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping
from typing import Final

from j10ce.errors import Denied
from j10ce.host.files import read_whole
from j10ce.host.resctrl import ROOT, SCHEMATA
from j10ce.kernel import file
from j10ce.model.knob import Support
from j10ce.model.plan import Gone, Refused

VIA: Final = "resctrl"
TASKS: Final = "tasks"
NOT_GROUPS: Final = frozenset({"info", "mon_data", "mon_groups"})
_ABSENT: Final = (FileNotFoundError, NotADirectoryError)
_ENDED: Final = (ProcessLookupError,)


class ResctrlFiles:
    """Used from one thread. Paths are relative to the root."""

    def __init__(self, root: str = ROOT, proc: str = "/proc") -> None:
        self._root = root
        self._proc = proc

    def support(self) -> Support:
        """Of the file system as a whole."""
        if not os.path.isdir(self._root):
            return Support(False, VIA, needs="a CPU and a kernel with resctrl (Intel RDT, AMD QoS, ARM MPAM)")
        if self.read(SCHEMATA) is None:
            return Support(False, VIA, needs=f"mount -t resctrl resctrl {self._root}")
        if not os.access(f"{self._root}/{SCHEMATA}", os.W_OK):
            return Support(False, VIA, needs=f"{self._root} to be writable: root, and mounted read-write")
        return Support(True, VIA)

    def groups(self) -> Collection[str]:
        """By name; without the root's own."""
        try:
            with os.scandir(self._root) as entries:
                return [e.name for e in entries if e.is_dir() and e.name not in NOT_GROUPS]
        except _ABSENT:
            return ()

    def identity(self, group: str) -> int | None:
        try:
            return os.stat(f"{self._root}/{group}").st_ino
        except _ABSENT:
            return None

    def read(self, path: str) -> str | None:
        try:
            content = read_whole(f"{self._root}/{path}")
        except OSError as e:
            raise Denied(f"cannot read {self._root}/{path}: {e.strerror}") from e
        return None if content is None else content.decode(errors="replace")

    def write(self, path: str, text: str) -> Refused | Gone | None:
        answer = file.write(f"{self._root}/{path}", text)
        return Refused(f"{answer.reason}; {self._said()}") if isinstance(answer, Refused) else answer

    def make(self, group: str) -> Refused | None:
        try:
            os.mkdir(f"{self._root}/{group}")
        except FileExistsError:
            return Refused(f"someone else has made the group {group!r}")
        except OSError as e:
            return Refused(f"no group {group!r}: kernel said {errno.errorcode.get(e.errno or 0)}; {self._said()}")
        return None

    def remove(self, group: str) -> Refused | Gone | None:
        """Whoever is inside is the root's again."""
        try:
            os.rmdir(f"{self._root}/{group}")
        except _ABSENT:
            return Gone()
        except OSError as e:
            return Refused(f"cannot remove {group!r}: kernel said {errno.errorcode.get(e.errno or 0)}")
        return None

    def homes(self, tasks: Collection[int]) -> Mapping[int, str]:
        """The group that each of them is in, empty for the root's; without those that are gone."""
        if os.path.exists(f"{self._proc}/self/cpu_resctrl_groups"):
            said = {task: file.read(f"{self._proc}/{task}/cpu_resctrl_groups") for task in tasks}
            return {task: _named(text) for task, text in said.items() if text is not None}
        listed = {int(t): g for g in self.groups() for t in (self.read(f"{g}/{TASKS}") or "").split()}
        return {task: listed.get(task, "") for task in tasks if os.path.exists(f"{self._proc}/{task}")}

    def move(self, task: int, group: str) -> Refused | Gone | None:
        """Gone: the task. A group that is not there refuses."""
        path = f"{self._root}/{group}/{TASKS}" if group else f"{self._root}/{TASKS}"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.write(fd, f"{task}\n".encode())
            finally:
                os.close(fd)
        except _ENDED:
            return Gone()
        except _ABSENT:
            return Refused(f"there is no group {group!r}")
        except OSError as e:
            said = errno.errorcode.get(e.errno or 0)
            return Refused(f"task {task} does not go to {group or 'the root'!r}: kernel said {said}; {self._said()}")
        return None

    def _said(self) -> str:
        return (self.read("info/last_cmd_status") or "").strip() or "without a reason"


def _named(text: str) -> str:
    """`res:/be` among the lines of cpu_resctrl_groups; `res:/` is the root's."""
    rows = (line.partition(":") for line in text.splitlines())
    return next((value.strip().strip("/") for name, _, value in rows if name == "res"), "")
