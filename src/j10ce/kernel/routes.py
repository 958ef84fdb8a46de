"""From a target to its place, from a setting to the back end that spells it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from j10ce.errors import QosError
from j10ce.kernel.backend import Acts, Backend, Batched, Builds, Estate, Instanced, Metered, Surveys, Tends, Tree
from j10ce.model.knob import KNOBS, TENDED, Deed, Setting, Support, TargetId, Value, group, has, kind_of
from j10ce.model.workload import Handle


class Routes:
    """The first back end of the list that has a knob is the one that is asked.

    Targets beside cgroups have an estate for each kind; all others are in the tree.
    """

    def __init__(self, tree: Tree, backends: Sequence[Backend], estates: Iterable[Estate] = ()) -> None:
        self.tree = tree
        self._estates = {e.kind: e for e in estates}
        self._backends = [(b, dict(b.knobs())) for b in backends]
        # Asked for on every write, and an isinstance() of a Protocol looks at all its methods each time.
        self._metered = {id(b): b for b in backends if isinstance(b, Metered)}
        self._surveys = {id(b): b for b in backends if isinstance(b, Surveys)}
        self._batched = {id(b): b for b in backends if isinstance(b, Batched)}
        self._instanced = {id(b): b for b in backends if isinstance(b, Instanced)}
        self._tends = {id(b): b for b in backends if isinstance(b, Tends)}
        self._actors = [b for b in backends if isinstance(b, Acts)]
        self.support: Mapping[str, Support] = self._merge()
        self.deeds: Mapping[Deed, Support] = dict(chain.from_iterable(b.deeds().items() for b in self._actors))

    def beside_cgroups(self) -> set[TargetId]:
        """Every target beside cgroups that is there."""
        return {target for estate in self._estates.values() for target in estate.targets()}

    def in_tree(self, target: TargetId) -> bool:
        return kind_of(target) not in self._estates

    def place(self, target: TargetId) -> Handle | None:
        estate = self._estates.get(kind_of(target))
        return estate.place(target) if estate else self.tree.place(target)

    def know(self, target: TargetId, at: Handle) -> None:
        if self.in_tree(target):
            self.tree.know(target, at)

    def builder(self, target: TargetId) -> Builds | Tree | None:
        """Who makes and removes targets of that kind; None: nobody does."""
        estate = self._estates.get(kind_of(target))
        if estate is None:
            return self.tree
        return estate if isinstance(estate, Builds) else None

    def actor(self, deed: Deed) -> Acts | None:
        return next((b for b in self._actors if deed in (offered := b.deeds()) and offered[deed].ok), None)

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

    def read_all(self, target: TargetId, among: Container[Setting]) -> Iterator[tuple[Setting, Value]]:
        """Every setting of a target that can be read. What all threads have is read of those `among` whom somebody
        gave something: to look at every thread of a machine takes long."""
        for knob, offered in self.support.items():
            if offered.ok and has(target, knob):
                for setting in self._settings(target, knob):
                    if knob in TENDED and setting not in among:
                        continue
                    if (value := self.look(setting)) is not None:
                        yield setting, value

    def _settings(self, target: TargetId, knob: str) -> Iterable[Setting]:
        setting = Setting(target, knob)
        if knob not in KNOBS or not KNOBS[knob].several:
            return (setting,)
        at, instanced = self.place(target), self._instanced.get(id(self.backend(setting)))
        return (setting._replace(instance=i) for i in (instanced.instances(knob, at) if at and instanced else ()))

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

    def tends(self, setting: Setting) -> Tends | None:
        return self._tends.get(id(self.backend(setting)))

    def identity(self, setting: Setting, at: Handle) -> int | None:
        estate = self._estates.get(kind_of(setting.target))
        return estate.identity(at) if estate else self.tree.identity(at, controller_of(setting))

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
    """Of a setting in the tree; what is said of threads stands and falls with the cgroup that they are in."""
    return (KNOBS[setting.knob].controller if setting.knob in KNOBS else "") or "cpu"


def ancestors(at: Handle) -> frozenset[TargetId]:
    """The groups above a place, in every hierarchy, without the root."""
    above: set[TargetId] = set()
    for path in {at.path, *at.paths.values()}:
        steps = path.split("/")
        above.update(group("/".join(steps[:n])) for n in range(1, len(steps)))
    return frozenset(above)
