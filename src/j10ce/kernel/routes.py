"""From a target to its place, from a setting to the back end that spells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from j10ce.errors import QosError
from j10ce.kernel.backend import Backend, Batched, Metered, Surveys, Tree
from j10ce.model.knob import KNOBS, Setting, Support, TargetId, Value, group
from j10ce.model.workload import Handle


class Routes:
    """The first back end of the list that has a knob is the one that is asked."""

    def __init__(self, tree: Tree, backends: Sequence[Backend]) -> None:
        self.tree = tree
        self._backends = [(b, dict(b.knobs())) for b in backends]
        # Asked for on every write, and an isinstance() of a Protocol looks at all its methods each time.
        self._metered = {id(b): b for b in backends if isinstance(b, Metered)}
        self._surveys = {id(b): b for b in backends if isinstance(b, Surveys)}
        self._batched = {id(b): b for b in backends if isinstance(b, Batched)}
        self.support: Mapping[str, Support] = self._merge()

    def place(self, target: TargetId) -> Handle | None:
        return self.tree.place(target)

    def backend(self, setting: Setting) -> Backend | None:
        for backend, knobs in self._backends:
            offered = knobs.get(setting.knob)
            if offered and offered.ok:
                return backend
        return None

    def via(self, setting: Setting, backend: Backend) -> str:
        return next(knobs[setting.knob].via for b, knobs in self._backends if b is backend)

    def named(self, via: str, knob: str) -> Backend | None:
        """The back end that saved an original."""
        matching = (b for b, knobs in self._backends if knob in knobs and knobs[knob].ok and knobs[knob].via == via)
        return next(matching, None)

    def read(self, setting: Setting) -> Value | None:
        at = self.place(setting.target)
        backend = self.backend(setting)
        return backend.read(setting, at) if backend and at else None

    def look(self, setting: Setting) -> Value | None:
        """Like `read`, and None also for what cannot be read."""
        try:
            return self.read(setting)
        except QosError:
            return None

    def read_all(self, target: TargetId) -> Iterator[tuple[Setting, Value]]:
        """Every setting of a target that can be read."""
        for knob, offered in self.support.items():
            setting = Setting(target, knob)
            if offered.ok and (value := self.look(setting)) is not None:
                yield setting, value

    def quantise(self, setting: Setting, value: Value) -> Value:
        """What the kernel will make of a value; the arbiter compares after it."""
        backend = self.backend(setting)
        return backend.quantise(setting, value) if backend else value

    def usage(self, setting: Setting, at: Handle) -> float | None:
        metered = self._metered.get(id(self.backend(setting)))
        return metered.usage(setting, at) if metered else None

    def beside(self, setting: Setting, at: Handle) -> float:
        """The sum of a knob over the other groups right below the root."""
        surveys = self._surveys.get(id(self.backend(setting)))
        return surveys.beside(setting, at) if surveys else 0.0

    def batched(self, backend: Backend) -> Batched | None:
        return self._batched.get(id(backend))

    def identity(self, setting: Setting, at: Handle) -> int | None:
        return self.tree.identity(at, controller_of(setting))

    def missing(self, setting: Setting) -> str:
        """Why no back end serves a setting."""
        needs = self.support[setting.knob].needs if setting.knob in self.support else ""
        return f"{setting.knob} is not available here; it needs {needs or 'a back end that has it'}"

    def _merge(self) -> Mapping[str, Support]:
        merged: dict[str, Support] = {}
        for _, knobs in self._backends:
            for name, offered in knobs.items():
                if name not in merged or (offered.ok and not merged[name].ok):
                    merged[name] = offered
        return merged


def controller_of(setting: Setting) -> str:
    return KNOBS[setting.knob].controller if setting.knob in KNOBS else "cpu"


def ancestors(at: Handle) -> frozenset[TargetId]:
    """The groups above a place, in every hierarchy, without the root."""
    above: set[TargetId] = set()
    for path in {at.path, *at.paths.values()}:
        steps = path.split("/")
        above.update(group("/".join(steps[:n])) for n in range(1, len(steps)))
    return frozenset(above)
