"""The helper process: asks each plugin controller, and writes its answer before the next one runs.

    python -m j10ce.agent.plugins.child [settings as JSON by controller name]

Ends when its standard input does, or with the agent. Whatever plugins print goes to stderr: standard output carries the
frames.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, BinaryIO, Final

import msgspec

from j10ce.agent.plugins import wire
from j10ce.agent.plugins.installed import CONTROLLERS
from j10ce.control.controller import Controller
from j10ce.model import schema
from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.snapshot import Groups, Snapshot
from j10ce.observe.series import SeriesBook

PR_SET_PDEATHSIG: Final = 1


class Host:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._points = {point.name: point for point in entry_points(group=CONTROLLERS)}
        self._settings = settings
        self._controllers: dict[str, Controller] = {}
        self._static: wire.Static | None = None
        self._book = SeriesBook()

    def answer(self, name: str, snap: Snapshot) -> wire.Answer:
        try:
            if name not in self._controllers:
                self._controllers[name] = load(self._points[name], self._settings.get(name, {}))
            return wire.Answer(name, list(self._controllers[name].propose(snap)))
        except Exception as e:  # whatever a plugin raises is its answer
            return wire.Answer(name, error=f"{type(e).__name__}: {e}")

    def snapshot(self, question: wire.Question) -> Snapshot:
        self._static = question.static or self._static
        if self._static is None:
            raise ValueError("the first question carries no tree")
        for target, metric, value in question.samples:
            self._book.add(question.now, target, metric, value)
        static = self._static
        settings: dict[Setting, Value] = dict(question.settings)
        return Snapshot(
            question.now,
            question.wall,
            static.node,
            Groups({g.target: g for g in static.groups}),
            self._book.at(question.now),
            {w.target: w for w in static.workloads},
            {TargetId(e.target): e for e in static.entitlements},
            settings,
            static.support,
            question.epoch,
            strategy=static.strategy,
        )

    def run(self, source: int, sink: BinaryIO) -> None:
        buffer = bytearray()
        while chunk := os.read(source, 1 << 20):
            buffer += chunk
            for body in wire.frames(buffer):
                question = wire.decode(body, wire.Question)
                snap = self.snapshot(question)
                for name in self._points:
                    if name not in question.benched:
                        send(sink, self.answer(name, snap))
                send(sink, wire.Answer())


def load(point: EntryPoint, settings: Mapping[str, Any]) -> Controller:
    """A controller class, built with its own strictly decoded Config when it has one."""
    made = point.load()
    config = getattr(made, "Config", None)
    controller: Controller = made(schema.convert(dict(settings), config)) if config else made()
    return controller


def send(sink: BinaryIO, answer: wire.Answer) -> None:
    sink.write(wire.encode(answer))
    sink.flush()


def die_with_the_agent() -> None:
    """A plugin that hangs does not see the end of its input when the agent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(0, 0)
    if any(event & select.POLLHUP for _, event in poll.poll(0)):
        sys.exit()  # it died before it could be asked to take us along


def main() -> None:
    die_with_the_agent()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    settings = msgspec.json.decode(sys.argv[1]) if len(sys.argv) > 1 else {}
    Host(settings).run(0, sink)


if __name__ == "__main__":
    main()
