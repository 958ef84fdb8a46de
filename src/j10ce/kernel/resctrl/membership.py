"""Which group of resctrl a task is in. Children are in their parent's."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from j10ce.kernel.resctrl.files import ResctrlFiles
from j10ce.kernel.tasks.trait import TaskValue
from j10ce.model.knob import Support
from j10ce.model.plan import Refused


class ResctrlMembership:
    knob = "resctrl.group"
    processes = False
    default: TaskValue = ""

    def __init__(self, files: ResctrlFiles) -> None:
        self._files = files

    def support(self) -> Support:
        return self._files.support()

    def quantise(self, value: TaskValue, /) -> TaskValue:
        return value

    def read(self, tasks: Collection[int], /) -> Mapping[int, TaskValue]:
        return dict(self._files.homes(tasks))

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        answers = {task: self._files.move(task, str(value)) for task in tasks}
        return {task: answer for task, answer in answers.items() if isinstance(answer, Refused)}
