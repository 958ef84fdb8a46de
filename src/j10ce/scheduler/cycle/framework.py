"""What plugins are asked and answer: the extension points of the Kubernetes scheduling framework.

A plugin implements those that it claims, and nothing else. Filters and scores answer for many nodes at once: `rows`
are numbers of nodes in the book. Nothing here does I/O, and time comes in as `now` (seconds since 1970).

    pre_enqueue → queue_sort → pre_filter → filter → (post_filter) → pre_score → score
    → reserve → permit → pre_bind → bind → post_bind
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows, Scores

MOST_SCORE: Final = 100.0


class Reach(Enum):
    """What the answer of a filter or a score depends on, and so how long it can be kept."""

    NODE = "node"  # the pod's shape and the node's object
    SUMS = "sums"  # and the book's sums of the node: allocatable, used, weighed. It may be asked of an imagined book
    ROOM = "room"  # and the pods on that node
    CLUSTER = "cluster"  # and pods on other nodes, or the pod's labels and namespace: it is asked anew each time


class Turned(NamedTuple):
    """Why a node is refused, in the words of Kubernetes. `resolvable`: evictions there may help."""

    reasons: tuple[str, ...]
    resolvable: bool = True


class Skip(NamedTuple):
    """A plugin has nothing to say about a pod: it is asked no more in this cycle."""


class Refused(NamedTuple):
    """No node will do, whichever it is; or a reservation or permit is turned down."""

    reason: str
    resolvable: bool = False


class Await(NamedTuple):
    """The pod keeps its node and waits for others; after `until` (of `now`) it gives it back."""

    until: float
    reason: str


class Candidate(NamedTuple):
    """A node where the pod fits once `victims` are gone. `why`, by uid: the rule and its numbers."""

    node: str
    victims: tuple[PodFacts, ...]
    why: Mapping[str, str]


Key: TypeAlias = Any  # anything with an order


@runtime_checkable
class PreEnqueue(Protocol):
    name: str

    def pre_enqueue(self, pod: PodFacts, now: float, /) -> str:
        """Why the pod is not tried yet; empty: it is."""
        ...


class Side(NamedTuple):
    """Where pods stand that are tried together: as the first of them came, and by what they have in common."""

    since: float
    name: str


@runtime_checkable
class QueueSort(Protocol):
    """One per profile. The smaller key goes first; ties go by creation, then uid."""

    name: str
    moves: bool  # whether keys change while time passes

    def queue_key(self, pod: PodFacts, now: float, /) -> Key: ...


@runtime_checkable
class PreFilter(Protocol):
    name: str

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | Refused | None: ...


@runtime_checkable
class Filter(Protocol):
    """In the order of a profile: a node is counted for the first one that refuses it."""

    name: str
    reach: Reach

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        """True for each of `rows` that the rule allows."""
        ...

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        """Why `filter` does not allow the node; asked for no other one."""
        ...


class Preemptor(Protocol):
    """What a post_filter may ask while it looks for victims."""

    book: Book

    def fits(self, pod: PodFacts, row: int, /) -> bool:
        """By all filters, as the book is now: ask within `book.without(...)`."""
        ...

    def budgets(self, victims: Sequence[PodFacts], /) -> int:
        """How many of them a disruption budget does not allow to go."""
        ...

    def spared(self, pod: PodFacts, /) -> bool:
        """Whether a plugin of the profile says that it has to go for nobody."""
        ...


@runtime_checkable
class Alike(Preemptor, Protocol):
    """A Preemptor that knows of which nodes a pod sees sums alone: of equal sums the answers are equal."""

    def alike(self, pod: PodFacts, rows: Rows, /) -> Mask: ...

    def room(self, pod: PodFacts, sums: Book, rows: Rows, /) -> Mask:
        """Where it fits, if sums of rows that are alike were `sums`."""
        ...


@runtime_checkable
class PostFilter(Protocol):
    """Asked when no node will do. `rows`: where evictions may help."""

    name: str

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        """A string says why nobody has to go."""
        ...


@runtime_checkable
class PreScore(Protocol):
    name: str

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        """`rows`: every node that is known, whether the pod fits there or not. Asked before the filters."""
        ...


@runtime_checkable
class Score(Protocol):
    name: str
    reach: Reach

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        """More is better. 0 to 100 already, where there is no `normalise`."""
        ...


@runtime_checkable
class Normalised(Protocol):
    def normalise(self, raw: Scores, /) -> Scores:
        """0 to 100, of the nodes that the pod may have. Each answer depends on its own raw score and on the least and
        the largest of all, and on nothing else."""
        ...


@runtime_checkable
class Reserve(Protocol):
    name: str

    def reserve(self, pod: PodFacts, node: str, now: float, /) -> Refused | None: ...

    def unreserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        """Whatever `reserve` did; may come without it, and twice."""
        ...


@runtime_checkable
class Permit(Protocol):
    name: str

    def permit(self, pod: PodFacts, node: str, now: float, /) -> Await | Refused | None: ...

    def permitted(self) -> Sequence[str]:
        """Uids of those that wait no longer; each is named once."""
        ...


@runtime_checkable
class PreBind(Protocol):
    name: str

    def pre_bind(self, pod: PodFacts, node: str, now: float, /) -> Refused | None: ...


@runtime_checkable
class Binder(Protocol):
    name: str

    def bind(self, pod: PodFacts, node: str, now: float, /) -> Skip | Mapping[str, str]:
        """Annotations that the pod gets by its binding. The first that does not skip is the one."""
        ...


@runtime_checkable
class PostBind(Protocol):
    name: str

    def post_bind(self, pod: PodFacts, node: str, now: float, /) -> None: ...


@runtime_checkable
class Groups(Protocol):
    """A filter that explains many refusals at once."""

    def whys(self, pod: PodFacts, book: Book, rows: Rows, /) -> Iterable[tuple[Turned, Rows]]:
        """As `why` of each of `rows`, which `filter` does not allow: each reason with its rows."""
        ...


@runtime_checkable
class Retries(Protocol):
    """A post_filter, pre_enqueue or queue_sort that may answer otherwise once time has passed."""

    def again_at(self, pod: PodFacts, now: float, /) -> float:
        """When to try a pod again that found no node or was not let in; infinite: when something changes."""
        ...


@runtime_checkable
class Gathers(Protocol):
    """A plugin that has some pods tried one right after the other, where the queue sorts them alike."""

    def side(self, pod: PodFacts, /) -> Side | None:
        """None: it stands alone."""
        ...


@runtime_checkable
class FactWatcher(Protocol):
    """A plugin that follows what is neither pod nor node: owners, namespaces, pledges, groups, quotas."""

    facts: tuple[type, ...]  # it hears of these alone

    def fact_seen(self, fact: Any, now: float, /) -> None: ...

    def fact_gone(self, fact: Any, now: float, /) -> None: ...


@runtime_checkable
class Spares(Protocol):
    """A plugin that knows of pods which have to go for nobody: they stand on what is held for them."""

    def stands(self, pod: PodFacts, /) -> bool: ...


@runtime_checkable
class BookReader(Protocol):
    """A plugin that looks at the cluster also where it is not handed the book."""

    def read(self, book: Book, /) -> None:
        """Once, before anything else: the book of all answers to come."""
        ...


@runtime_checkable
class PodWatcher(Protocol):
    """A plugin that follows pods: every one that is not of kube-system, whoever schedules it."""

    def pod_seen(self, pod: PodFacts, now: float, /) -> None: ...

    def pod_gone(self, pod: PodFacts, now: float, /) -> None: ...
