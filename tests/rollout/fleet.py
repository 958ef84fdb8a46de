"""A fleet without processes: policies, the documents made of them, and nodes that obey and report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.manager.documents.documents import Documents
from j10ce.manager.policies.reports import Reports
from j10ce.manager.policies.status import Basis, judged_alone
from j10ce.manager.policies.watched import Watched
from j10ce.model.kinds import (
    CpuSection,
    Meta,
    NodeQoS,
    NodeQoSStatus,
    NodeReport,
    Object,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
    QoSProfileSpec,
    Rollout,
    Tier,
)
from j10ce.model.schema import parse
from j10ce.model.stored import Event, Key, key_of
from j10ce.policy.document.document import NodeDocument, cohort
from j10ce.policy.lifetime import revision_of
from j10ce.testing.build import WALL
from tests.hearing import by_heartbeat

REF = "QoSProfile/web"
Fault = Callable[[str, int], str]  # (node, weight) -> why it fails there


def fine(node: str, weight: int) -> str:
    return ""


class Fleet:
    """One profile, `web`, whose CPU weight tells its revisions apart, and nodes that take whatever they get."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.wall = WALL
        self.documents, self._objects = Documents(), dict[Key, Object]()
        self.reports = Reports(self.documents, by_heartbeat(lambda: self.wall))
        self._watched = Watched()
        self.names, self._weights = list(nodes), dict[str, int]()  # by hash of the document
        for name in self.names:
            self.put(NodeQoS(metadata=Meta(name=name)))

    @property
    def profile(self) -> QoSProfile:
        profile = self._objects[Key("QoSProfile", "", "web")]
        assert isinstance(profile, QoSProfile)
        return profile

    @property
    def status(self) -> PolicyStatus:
        return self.profile.status

    def put(self, obj: Object) -> None:
        old = self._objects.get(key_of(obj))
        event = Event("MODIFIED" if old else "ADDED", obj, "", old)
        self._objects[key_of(obj)] = obj
        self.reports.take(event, self.documents.take(event))

    def delete(self, obj: Object) -> None:
        event = Event("DELETED", self._objects.pop(key_of(obj)), "", obj)
        self.reports.take(event, self.documents.take(event))

    def edit(self, weight: int, rollout: Rollout | UnsetType = UNSET) -> None:
        """Another generation, recorded in the history, and judged once before any node has it."""
        spec = QoSProfileSpec(tier=Tier.STANDARD, cpu=CpuSection(weight=weight), rollout=rollout)
        key = Key("QoSProfile", "", "web")
        if key not in self._objects:
            made = QoSProfile(metadata=Meta(name="web", uid="u-1", generation=1), spec=spec)
        else:
            meta = replace(self.profile.metadata, generation=self.profile.metadata.generation + 1)
            made = replace(self.profile, metadata=meta, spec=spec)
        self.put(made)
        self.put(revision_of(made))
        self.judge()

    def weights(self) -> dict[str, int]:
        """What each node obeys; nodes that have no such profile are left out."""
        return {name: weight for name in self.names if (weight := self.weight(name))}

    def weight(self, node: str) -> int:
        obeyed = self.documents.of(node)
        hash_ = obeyed.hash
        if hash_ not in self._weights:
            document = parse(obeyed.data, NodeDocument)
            self._weights[hash_] = next((int(p.spec.cpu.weight or 0) for p in document.profiles), 0)
        return self._weights[hash_]

    def report(self, fault: Fault = fine, *, silent: Iterable[str] = ()) -> None:
        """Every node obeys its document and says so; the silent ones only did the former, once."""
        for name in self.names:
            why = fault(name, self.weight(name))
            heard = self.wall - 3600 if name in silent else self.wall
            node_report = NodeReport(
                heartbeat=datetime.fromtimestamp(heard, UTC),
                document=self.documents.of(name).hash,
                failing={REF: why} if why else {},
            )
            self.put(NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(node=node_report)))

    def judge(self) -> PolicyStatus:
        self.reports.look()
        standing, watched_s = self.reports.standing(self.profile), self._watched.take(self.profile, self.wall)
        basis = Basis(standing, self.reports.of(self.profile), self.revisions(), watched_s)
        self.put(replace(self.profile, status=judged_alone(self.profile, basis, self.wall)))
        self._watched.take(self.profile, self.wall)
        return self.status

    def revisions(self) -> list[PolicyRevision]:
        return [obj for obj in self._objects.values() if isinstance(obj, PolicyRevision)]

    def settle(self, fault: Fault = fine) -> PolicyStatus:
        """Reports and judgements until a rollout that goes well is complete."""
        for _ in range(6):
            self.report(fault)
            self.judge()
            self.wall += 10
        return self.status

    def reason(self) -> str:
        return next((c.reason for c in self.status.conditions if c.type == "Progressing"), "")


def canary(fleet: Fleet, percent: int) -> set[str]:
    return {name for name in fleet.names if cohort(name, REF) < percent}
