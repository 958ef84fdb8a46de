"""Invariant 8: a stale put conflicts; a watch from r delivers exactly the changes after r, or says Compacted."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from j10ce.errors import Compacted, Conflict, NotFound
from j10ce.model.kinds import Object
from j10ce.store.memory import MemoryStore
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.store import ABSENT, ANY, Expect, Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, judged

NAMES = st.sampled_from(["a", "b", "c"])
KEPT = 12


class AnyStore(RuleBasedStateMachine):
    """A store beside a dictionary and a list of everything that ever happened."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.run(self.open())
        self.held: dict[str, Object] = {}
        self.happenings: list[tuple[str, Object]] = []  # every change, oldest first
        self.revisions = [
            self.run(self.store.list(KIND)).revision
        ]  # self.revisions[n] is just before self.happenings[n]

    async def open(self) -> Store:
        return MemoryStore(lambda: WALL, kept=KEPT)

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    @rule(name=NAMES, cpu=st.integers(1, 3), expect=st.sampled_from(["absent", "any", "fresh", "stale"]))
    def put_spec(self, name: str, cpu: int, expect: str) -> None:
        old = self.held.get(name)
        wish = reservation(name, cpu=str(cpu))
        claim = self.claim(old, expect)
        if refusal := self.refusal(old, claim):
            with pytest.raises(refusal):
                self.run(self.store.put(wish, expect=claim))
            return
        made = self.run(self.store.put(wish, expect=claim))
        assert made.spec == wish.spec
        if old is None or old.spec != wish.spec:
            self.happened("MODIFIED" if old else "ADDED", made)
            assert made.metadata.generation == (old.metadata.generation + 1 if old else 1)
        else:
            assert made == old

    @rule(name=NAMES, message=st.sampled_from(["fits", "does not fit"]))
    def put_status(self, name: str, message: str) -> None:
        old = self.held.get(name)
        if old is None:
            with pytest.raises(NotFound):
                self.run(self.store.put(judged(reservation(name), message), part="status"))
            return
        wish = judged(old, message)
        made = self.run(self.store.put(wish, expect=old.metadata.resource_version, part="status"))
        assert made.metadata.generation == old.metadata.generation
        if wish != old:
            self.happened("MODIFIED", made)

    @rule(name=NAMES, expect=st.sampled_from(["any", "fresh", "stale"]))
    def delete(self, name: str, expect: str) -> None:
        old = self.held.get(name)
        claim = self.claim(old, expect)
        if refusal := NotFound if old is None else self.refusal(old, claim):
            with pytest.raises(refusal):
                self.run(self.store.delete(KIND, "default", name, expect=claim))
            return
        self.happened("DELETED", self.run(self.store.delete(KIND, "default", name, expect=claim)))

    @rule(back=st.integers(0, 20))
    def watch(self, back: int) -> None:
        start = max(0, len(self.happenings) - back)
        try:
            heard = self.run(self.hear(self.revisions[start], len(self.happenings) - start))
        except Compacted:
            assert len(self.happenings) - start > KEPT - KEPT // 8 - 1, "recent changes are kept"
            return
        assert heard == self.happenings[start:]

    async def hear(self, since: str, count: int) -> list[tuple[str, Object]]:
        watch = self.store.watch(KIND, since)
        heard = [await asyncio.wait_for(anext(watch), 30) for _ in range(count)]
        one_more = asyncio.ensure_future(anext(watch))  # noqa: TID251
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not one_more.done()
        one_more.cancel()
        return [(event.type, event.object) for event in heard]

    @invariant()
    def holds_what_was_put(self) -> None:
        listing = self.run(self.store.list(KIND))
        assert {obj.metadata.name: obj for obj in listing.items} == self.held

    def happened(self, type_: str, obj: Object) -> None:
        self.happenings.append((type_, obj))
        self.revisions.append(obj.metadata.resource_version)
        if type_ == "DELETED":
            del self.held[obj.metadata.name]
        else:
            self.held[obj.metadata.name] = obj

    def claim(self, old: Object | None, expect: str) -> str | Expect:
        if expect in ("absent", "any"):
            return ABSENT if expect == "absent" else ANY
        return old.metadata.resource_version if old and expect == "fresh" else "1"

    def refusal(self, old: Object | None, claim: str | Expect) -> type[Exception] | None:
        if old is None:
            return NotFound if isinstance(claim, str) else None
        if claim is ANY or claim == old.metadata.resource_version:
            return None
        return Conflict

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()


class AnySqlite(AnyStore):
    """The same on a file, closed and opened again at any moment."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="j10ce-store-")
        super().__init__()

    async def open(self) -> Store:
        return SqliteStore(Path(self.folder.name, "objects.db"), lambda: WALL, kept=KEPT)

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.run(self.open())

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestAnyMemory = AnyStore.TestCase
TestAnySqlite = AnySqlite.TestCase
TestAnyMemory.settings = settings(stateful_step_count=60)
TestAnySqlite.settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
