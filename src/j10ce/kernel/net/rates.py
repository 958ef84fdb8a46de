"""The back end of links: whether what leaves by one, or comes in, is queued for here, and how much there may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from j10ce.host.net import bpf, classes
from j10ce.host.net.queues import LinkQueue
from j10ce.kernel.net import foreign, htb, probation
from j10ce.kernel.net.tree import LinkTree
from j10ce.kernel.net.trees import Trees, Way
from j10ce.model.knob import Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

WAYS: Final[Mapping[str, Way]] = {"link.egress.rate": "egress", "link.ingress.rate": "ingress"}
TAKE_OVER: Final = "link.take_over"
NOTHING: Final = "none"  # how the journal spells a link that the kernel itself takes care of
OURS: Final = "ours"
THEIRS: Final = "theirs"


class Probation(Protocol):
    def poll(self) -> int | None:
        """How it ended; None: not yet."""
        ...


TryOut = Callable[[int, Way, str], Probation]
Lane: TypeAlias = tuple[int, Way]  # one way of a link


class LinkRates:
    """What others have set up is put aside only when told so, and only what can be put back word for word."""

    def __init__(self, trees: Trees, support: Mapping[Way, Support], try_out: TryOut = probation.start) -> None:
        """`try_out`: starts whoever gives a link back what it had, unless traffic passes."""
        self._trees = trees
        self._support = support
        self._try_out = try_out
        self._may: set[int] = set()  # links on which the queues of others may be put aside
        self._trials: dict[Lane, Probation] = {}
        self._last: dict[Lane, int] = {}
        self._failed: dict[Lane, int] = {}  # at which rate nothing passed

    def knobs(self) -> Mapping[str, Support]:
        return {knob: self._support[way] for knob, way in WAYS.items()} | {TAKE_OVER: self._support["egress"]}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        """Whole bytes."""
        return float(int(v) // 8 * 8) if s.knob in WAYS and isinstance(v, float | int) and v < math.inf else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        index = self._index(at)
        if index is None:
            return None
        if s.knob == TAKE_OVER:
            return float(index in self._may)
        tree = self._trees.of(index, WAYS[s.knob])
        self._look_after((index, WAYS[s.knob]), tree)
        return tree.rate * 8.0 if tree else math.inf

    def _look_after(self, lane: Lane, tree: LinkTree | None) -> None:
        """Whoever tried it has ended, or was killed with an agent before this one."""
        trial = self._trials.get(lane)
        ended = trial.poll() if trial else None
        if ended is not None:
            del self._trials[lane]
        if ended == probation.WENT_BACK:
            self._failed[lane] = self._last.get(lane, 0)
        elif trial is None and tree is not None and tree.on_probation and not self._trees.leads_in(lane[0]):
            self._trials[lane] = self._try_out(*lane, "")

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        index = self._index(at)
        if index is None:
            return Gone()
        if not isinstance(v, float | int):
            return Refused(f"{s.knob} does not take {render(s.knob, v)}")
        if s.knob == TAKE_OVER:
            (self._may.add if v else self._may.discard)(index)
            self._failed.clear()
            return Applied(float(bool(v)))
        way = WAYS[s.knob]
        self._look_after((index, way), self._trees.of(index, way))
        try:
            refused = self._fell(index, way) if v == math.inf else self._carry((index, way), htb.bytes_of(v))
        except OSError as e:
            return Refused(f"no queueing on {s.target}: {bpf.complaint(e)}")
        held = self.read(s, at) if refused is None else None
        return refused or (Gone() if held is None else Applied(held))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        index, held = self._index(at), self.read(s, at)
        if index is None or held is None or s.knob == TAKE_OVER:
            return None if held is None else f"{held:.0f}"
        if tree := self._trees.of(index, WAYS[s.knob]):
            return f"{OURS} {tree.rate}"
        if WAYS[s.knob] == "ingress":
            return NOTHING
        root = self._trees.root(index)
        if root is None or classes.is_ours(root):
            return NOTHING
        return f"{THEIRS} {foreign.capture(self._trees.netlink, index)}"

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        index = self._index(at)
        if index is None:
            return Gone()
        if s.knob == TAKE_OVER:
            return self.write(s, float(text), at)
        what, _, rest = text.partition(" ")
        if what == OURS:
            return self.write(s, int(rest) * 8.0, at)
        try:
            refused = self._fell(index, WAYS[s.knob], rest if what == THEIRS else "")
        except OSError as e:
            return Refused(f"queueing on {s.target} stays: {bpf.complaint(e)}")
        if refused is None and what == THEIRS and self.save(s, at) != text:
            return Refused(f"queueing on {s.target} is not all as it was before; see tc qdisc, tc class and tc filter")
        return refused or Applied(math.inf)

    def _fell(self, index: int, way: Way, before: str = "") -> Refused | None:
        if way == "egress":
            return self._trees.fell(index, foreign.replay(before))
        self._trees.fell_ingress(index)
        return None

    def _carry(self, lane: Lane, rate: int) -> Refused | None:
        if tree := self._trees.of(*lane):
            return tree.carry(rate)
        if self._failed.get(lane) == rate:
            return Refused(f"at {rate * 8} bit/s no traffic passed within {probation.WITHIN_S:g} s, so it went back")
        index, way = lane
        kept = foreign.capture(self._trees.netlink, index) if way == "egress" and self._theirs(index) else ""
        refused = self._plant(index, rate) if way == "egress" else self._trees.plant_ingress(index, rate)
        if refused is None:
            self._last[lane] = rate
            if not self._trees.leads_in(index):
                self._trials[lane] = self._try_out(index, way, kept)
        return refused

    def _theirs(self, index: int) -> LinkQueue | None:
        root = self._trees.root(index)
        return None if root is None or classes.is_ours(root) else root

    def _plant(self, index: int, rate: int) -> Refused | None:
        root, netlink = self._trees.root(index), self._trees.netlink
        theirs = root is not None and not classes.is_ours(root)
        if root is not None and theirs and (why := self._objection(index, root)):
            return Refused(why)
        kept = foreign.capture(netlink, index) if theirs else ""
        before = [htb.no_root(index)] if root else ()
        refused = self._trees.plant(index, rate, before, divided=not self._trees.leads_in(index))
        if refused and kept:
            netlink.ask(foreign.replay(kept))
        return refused

    def _objection(self, index: int, root: LinkQueue) -> str:
        """Why what others have set up stays."""
        theirs = f"somebody else's queueing is there: qdisc {root.kind} {root.handle >> 16:x}:"
        if index not in self._may:
            return f"{theirs}; it is put aside only where the strategy says takeOver"
        strange = foreign.strange(self._trees.netlink, index)
        return f"{theirs}, with {strange}, which could not be put back as it was" if strange else ""

    def _index(self, at: Handle) -> int | None:
        index = int(at.path)
        return index if index in self._trees.names() else None
