"""Who is killed first when memory runs out: the kernel adds `oom_score_adj` thousandths of all memory to what each
process uses, and takes the largest; -1000 is never taken."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from j10ce.kernel import file
from j10ce.kernel.tasks.trait import TaskValue
from j10ce.model.knob import KNOBS, Support
from j10ce.model.plan import Refused

VIA: Final = "proc"
FILE: Final = "oom_score_adj"


class OomScores:
    """Processes have it as a whole, and their children from them."""

    knob = "oom.score_adj"
    processes = True
    default: TaskValue = 0.0

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc

    def support(self) -> Support:
        if not os.path.exists(f"{self._proc}/self/{FILE}"):
            return Support(False, VIA, needs="/proc to be mounted")
        return Support(True, VIA)

    def quantise(self, value: TaskValue, /) -> TaskValue:
        about = KNOBS[self.knob]
        return float(round(min(max(float(value), about.low), about.high)))

    def read(self, tasks: Collection[int], /) -> Mapping[int, TaskValue]:
        texts = {task: file.read(f"{self._proc}/{task}/{FILE}") for task in tasks}
        return {task: float(int(text)) for task, text in texts.items() if text}

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        answers = {task: self._give(task, f"{int(value)}\n".encode()) for task in tasks}
        return {task: refused for task, refused in answers.items() if refused}

    def _give(self, task: int, text: bytes) -> Refused | None:
        """One that has ended meanwhile refuses nothing."""
        try:
            with suppress(FileNotFoundError, ProcessLookupError):
                fd = os.open(f"{self._proc}/{task}/{FILE}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    os.write(fd, text)
                finally:
                    os.close(fd)
        except OSError as e:
            said = errno.errorcode.get(e.errno or 0, str(e.errno))
            return Refused(f"the kernel said {said}; to be killed later than before takes CAP_SYS_RESOURCE")
        return None
