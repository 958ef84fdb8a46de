"""Who is next, also of thousands whose order moves with time."""

from __future__ import annotations

from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.framework import Key
from j10ce.scheduler.cycle.queue import STALE_S, Backoff, Place, Queue

PLAIN = Shape((), (0, 0))
AT_ONCE, STEP_S = 32, 0.01


def pod(n: int) -> PodFacts:
    return PodFacts(f"uid-{n}", "default", f"p{n}", PLAIN, labels={"n": str(n)}, created=float(n))


class Asked:
    """A queue of pods whose order is turned round at a moment; counts how often somebody asks for a key."""

    def __init__(self, pods: int, turns_at: float) -> None:
        self.count, self._turns_at = 0, turns_at
        self.queue = Queue(self._key, moves=True)
        for n in range(pods):
            self.queue.activate(self.queue.put(pod(n)), 0.0)

    def _key(self, pod: PodFacts, now: float) -> Key:
        self.count += 1
        return pod.created if now < self._turns_at else -pod.created

    def taken(self, now: float, most: int) -> list[str]:
        """As a step does."""
        names = []
        while len(names) < most and (entry := self.queue.pop(now)) is not None:
            names.append(entry.pod.name)
            self.queue.remove(entry.pod.uid)
        return names


def test_of_a_few_pods_the_order_is_that_of_the_moment() -> None:
    few = Asked(10, turns_at=1.0)
    assert few.taken(0.0, 2) == ["p0", "p1"]
    assert few.taken(1.0, 2) == ["p9", "p8"]


def test_to_sort_thousands_costs_each_the_same_however_many_wait_beside_it() -> None:
    """Sorted anew for each 32 that are taken, keys would be asked for 64 times a pod of 4,000, 256 times of 16,000."""
    counts = []
    for pods in (4_000, 16_000):
        many, now, taken = Asked(pods, turns_at=1e9), 0.0, 0
        while taken < pods:
            taken += len(many.taken(now, AT_ONCE))
            now += STEP_S
        counts.append(many.count / pods)
    assert max(counts) < 4


def test_an_order_of_thousands_is_no_older_than_it_says() -> None:
    many = Asked(1_000, turns_at=1.0)
    assert many.taken(0.0, 1) == ["p0"]
    many.taken(1.0, 1)
    assert many.taken(1.0 + 1_000 * STALE_S, 1) == ["p998"]


def test_who_was_popped_and_is_not_decided_yet_is_not_popped_again_in_the_same_step() -> None:
    some = Asked(100, turns_at=1e9)
    popped = [entry.pod.name for _ in range(100) if (entry := some.queue.pop(5.0)) is not None]
    assert len(popped) == len(set(popped)) == 100
    assert len(some.queue.within(Place.ACTIVE)) == 100


def test_a_pod_rests_twice_as_long_after_each_try_up_to_the_most() -> None:
    queue = Queue(lambda pod, now: pod.created, moves=False, backoff=Backoff(first_s=2.0, most_s=7.0))
    entry, rests = queue.put(pod(0)), list[float]()
    for _ in range(4):
        queue.fail(entry, frozenset(), "no room", 100.0, -1.0)
        rests.append(entry.until - 100.0)
    assert rests == [2.0, 4.0, 7.0, 7.0]
