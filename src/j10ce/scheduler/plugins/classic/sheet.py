"""The measures of all pods that have a node, at once: what `OwnerAccount.measure` says of one, for arrays of them.

Sums are linear in time between two events. So a line of numbers per pod is kept, and written anew when something
happened on its account or on its node; a question costs a few operations on arrays, however many owners there are.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from j10ce.scheduler.accounts.account import Incarnation, OwnerAccount
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.identity import SYSTEM, acceptable_overhead
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Amounts, Mask, Rows

Numbers: TypeAlias = npt.NDArray[np.float64]
INDEPENDENT, AVERAGE, AGGREGATE, CONCURRENT = range(4)
CODES: Final = {
    "independent": INDEPENDENT, "average": AVERAGE, "aggregate": AGGREGATE, "concurrent": CONCURRENT,
}  # fmt: skip
N = TypeVar("N", float, Numbers)
LINES: Final = 64  # at least, that are made at a time
NOWHERE: Final = -1.0


class PodLine(NamedTuple, Generic[N]):
    """Of one pod: where it is, and what its measure is made of. Sums are base + open · (now − origin)."""

    row: N
    owner: N  # equal for pods on one account
    approach: N
    slo: N
    acceptable: N
    contributing: N
    pending: N
    running: N
    slots: N
    in_phase: N  # 1: it is Running, as far as its phase says
    run_start: N  # it does not run
    origin: N
    incarnations: N
    killed: N
    ran: N
    ran_open: N
    waited: N
    waited_open: N
    bound: N
    bound_open: N
    effective: N  # of a concurrent owner, until its last event, and what it has gained since
    discarded: N
    effective_open: N
    discarded_open: N
    until: N


NOBODY: Final = (NOWHERE, *(0.0,) * (len(PodLine._fields) - 1))
ROW, OWNER = PodLine._fields.index("row"), PodLine._fields.index("owner")


class OwnerLines:
    """An account, and the numbers of its lines."""

    def __init__(self, account: OwnerAccount, number: int) -> None:
        self.account, self.number = account, float(number)
        self.version = account.version
        self.lines: set[int] = set()


class Sheet:
    """Follows a book and the accounts. Pods that nobody follows, or that go for nobody in any case, have no line."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._version = -1  # of the book, as it was seen
        self._table: Numbers = np.zeros((len(NOBODY), 0))
        self._charges: Amounts = np.zeros((0, 0), np.int64)  # of each line, what it takes by the book's columns
        self._pods: dict[int, tuple[PodFacts, int]] = {}  # by line, with their rows
        self._of: dict[int, OwnerLines] = {}  # by line
        self._free: list[int] = []
        self._there: dict[int, list[int]] = {}  # by row: lines
        self._owners: dict[int, OwnerLines] = {}  # by identity of their accounts, which they hold
        self._numbers = count(1)
        self._astray: dict[str, tuple[PodFacts, int]] = {}  # by uid: who has a node, and no account as yet

    def look(self, book: Book) -> None:
        more = book.used.shape[1] - self._charges.shape[1]
        self._charges = np.pad(self._charges, ((0, 0), (0, max(more, 0))))
        for row in np.flatnonzero(book.touched_at[: len(book)] > self._version).tolist():
            self._read(book, row)
        self._version = book.version
        for uid, (pod, row) in list(self._astray.items()):
            if self._accounts.of(uid) is not None:
                del self._astray[uid]
                self._enter(book, pod, row)
        for owner in list(self._owners.values()):
            if owner.version != owner.account.version:
                owner.version = owner.account.version
                for line in list(owner.lines):
                    self._write(line, owner)

    def on(self, rows: Rows, book: Book) -> Rows:
        """The lines of pods that are there."""
        wanted = np.zeros(len(book) + 1, np.bool_)  # the last one: nowhere
        wanted[rows] = True
        lines: Rows = np.flatnonzero(wanted[self._table[ROW].astype(np.int64)])
        return lines

    def rows(self, lines: Rows) -> Rows:
        rows: Rows = self._table[ROW, lines].astype(np.int64)
        return rows

    def pod(self, line: int) -> PodFacts:
        return self._pods[line][0]

    def charges(self, lines: Rows) -> Amounts:
        """What they take, by the book's columns."""
        taken: Amounts = self._charges[lines]
        return taken

    def of_account(self, lines: Rows, key: str) -> Mask:
        account = self._accounts.by_key.get(key)
        owner = self._owners.get(id(account)) if account is not None else None
        return np.asarray(self._table[OWNER, lines] == (NOWHERE if owner is None else owner.number), np.bool_)

    def lines(self, lines: Rows) -> PodLine[Numbers]:
        return PodLine[Numbers](*self._table[:, lines])

    # -- inside

    def _read(self, book: Book, row: int) -> None:
        for line in self._there.pop(row, ()):
            self._leave(line)
        for uid in [uid for uid, (_, where) in self._astray.items() if where == row]:
            del self._astray[uid]
        for pod in book.there(row):
            if pod.namespace != SYSTEM and not pod.critical and pod.deleted is None:
                self._enter(book, pod, row)

    def _enter(self, book: Book, pod: PodFacts, row: int) -> None:
        account = self._accounts.account(pod.uid)
        if account is None:
            self._astray[pod.uid] = (pod, row)
            return
        owner = self._owners.get(id(account))
        if owner is None:
            owner = self._owners[id(account)] = OwnerLines(account, next(self._numbers))
        if not self._free:
            self._more()
        line = self._free.pop()
        self._pods[line], self._of[line] = (pod, row), owner
        self._there.setdefault(row, []).append(line)
        owner.lines.add(line)
        self._charges[line] = book.charge(pod.shape)
        self._write(line, owner)

    def _leave(self, line: int) -> None:
        owner = self._of.pop(line)
        del self._pods[line]
        self._table[:, line] = NOBODY
        self._free.append(line)
        owner.lines.discard(line)
        if not owner.lines:
            del self._owners[id(owner.account)]

    def _more(self) -> None:
        lines = self._table.shape[1]
        more = np.repeat(np.array([NOBODY]).T, max(LINES, lines), axis=1)
        self._table = np.concatenate([self._table, more], axis=1)
        self._charges = np.pad(self._charges, ((0, more.shape[1]), (0, 0)))
        self._free += range(lines, self._table.shape[1])

    def _write(self, line: int, owner: OwnerLines) -> None:
        (pod, row), account = self._pods[line], owner.account
        it = account.live.get(pod.uid)
        if it is None:  # its account was closed, and perhaps it has another one by now
            self._there[row].remove(line)
            self._leave(line)
            self._astray[pod.uid] = (pod, row)
            return
        self._table[:, line] = line_of(account, it, row, owner.number, self._accounts.default_acceptable)


def line_of(
    account: OwnerAccount, it: Incarnation, row: int, number: float, default_acceptable: float
) -> tuple[float, ...]:
    if not it.current:
        return NOBODY
    identity, clock = it.identity, it.clock
    flows = it.slot.flows if identity.approach == "independent" else account.flows
    effective, discarded, until, online, needed = account.online.state
    enough = online >= needed
    return PodLine(
        row, number, CODES[identity.approach], identity.slo,
        acceptable_overhead(identity.slo, identity.acceptable, default_acceptable), account.contributes(identity),
        account.pending, account.running, needed, it.pod.phase == "Running",
        math.inf if clock.run_start is None else clock.run_start,
        flows.origin, flows.incarnations, flows.killed,
        flows.running.base, flows.running.open, flows.waiting.base, flows.waiting.open,
        flows.binding.base, flows.binding.open,
        effective, discarded, online if enough else 0.0, 0.0 if enough else online, until,
    )  # fmt: skip
