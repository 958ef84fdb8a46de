"""A small cluster that carries out what a Scheduler decides: owners of one pod, created anew when it is gone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import NodeFacts, OwnerFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.decisions import Bind, Evict
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

START: Final = 1_790_000_000.0
STARTS: Final = [1] * 28 + [2] * 1400 + [3] * 754 + [4] * 35 + [5] * 6 + [6] * 3  # seconds from binding to running
SHAPE: Final = Shape((("cpu", 375),), (375, 0))


def nobody(_: PodFacts) -> bool:
    return False


@dataclass(frozen=True)
class Units:
    """Of a reservation, as far as preemption asks for them."""

    stands: Callable[[PodFacts], bool]

    def pre_bind(self, pod: PodFacts, node: str, now: float, /) -> None:
        return None

    name: str = "Units"


@dataclass
class Cluster:
    settings: QosSettings
    nodes: int = 20
    seed: int = 1
    longer: float = 0.0  # each start takes so much longer
    stands: Callable[[PodFacts], bool] = nobody
    starts: int = 0
    evictions: list[Evict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.accounts = Accounts(self.settings.mode, self.settings.slo, self.settings.acceptable_overhead)
        self.plugin = QosAware(self.settings, self.accounts)
        self.scheduler = Scheduler([profile("s", [self.plugin, NodeResourcesFit(), Units(self.stands)])])
        self.events: list[tuple[float, int, Any]] = []
        self.pods: dict[str, PodFacts] = {}
        self._numbers = count()
        for n in range(self.nodes):
            self.scheduler.put_node(NodeFacts(f"n{n:03}", {}, {"cpu": 3750, "pods": 110}), START)

    def arrive(self, slos: list[float]) -> None:
        """One owner per second, in a random order."""
        self.rng.shuffle(slos)
        for n, slo in enumerate(slos):
            self._at(START + n, self.create, f"o{n}", slo)

    def run(self, seconds: float) -> None:
        end = START + seconds
        while True:
            now = min(self.events[0][0] if self.events else end, self.scheduler.next_at(end))
            if now >= end:
                return
            while self.events and self.events[0][0] <= now:
                _, _, (deed, *arguments) = heappop(self.events)
                deed(*arguments, now)
            for decision in self.scheduler.step(now):
                self._carry_out(decision, now)

    def availability(self, seconds: float) -> list[tuple[float, float]]:
        """SLO and what was had, of each owner: running / (running + waiting), starts count as waiting."""
        return [(a.identity.slo, a.sums(START + seconds).qos) for a in self.accounts.sorted()]

    # -- inside

    def create(self, owner: str, slo: float, now: float) -> None:
        uid = f"p{next(self._numbers)}"
        facts = OwnerFacts("Deployment", "shop", owner)
        annotations = {"slo": str(slo), "qosMeasuring": "independent", "controller": owner}
        self._put(
            PodFacts(uid, "shop", uid, SHAPE, annotations=annotations, scheduler="s", created=now, owner=facts), now
        )

    def _carry_out(self, decision: object, now: float) -> None:
        match decision:
            case Bind(pod, node, _, _):
                self.starts += 1
                self._put(self.pods[pod.uid]._replace(node=node), now)
                self.scheduler.bound(pod.uid, now)
                self._at(now + self.rng.choice(STARTS) + self.longer, self._start, pod.uid)
            case Evict(victim):
                self.evictions.append(decision)
                self._at(now, self._end, victim.uid)
            case _:
                pass

    def _start(self, uid: str, now: float) -> None:
        if uid in self.pods:
            self._put(self.pods[uid]._replace(started=now, phase="Running"), now)

    def _end(self, uid: str, now: float) -> None:
        if (pod := self.pods.pop(uid, None)) is not None:
            self.scheduler.remove_pod(uid, now)
            assert pod.owner
            self.create(pod.owner.name, float(pod.annotations["slo"]), now)

    def _put(self, pod: PodFacts, now: float) -> None:
        self.pods[pod.uid] = pod
        self.scheduler.put_pod(pod, now)

    def _at(self, when: float, *deed: Any) -> None:
        heappush(self.events, (when, next(self._numbers), deed))
