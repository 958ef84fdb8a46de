"""What crosses the pipe between the agent and the helper process that runs plugin controllers: msgpack, by length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from j10ce.model import knob
from j10ce.model.knob import Setting, Support, TargetId, Value
from j10ce.model.parts.strategy import Strategy
from j10ce.model.plan import Proposal
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.snapshot import METRICS, Group, NodeFacts, Snapshot
from j10ce.model.workload import Entitlement, Workload

HEADER: Final = 4
MOST_FRAME: Final = 64 * 1024 * 1024
T = TypeVar("T")


class Static(Struct, frozen=True):
    """The part of a snapshot that only moves with its epoch."""

    node: NodeFacts
    groups: list[Group]
    workloads: list[Workload]
    entitlements: list[Entitlement]
    support: dict[str, Support]
    strategy: Strategy = Strategy()


class Question(Struct, frozen=True):
    """One instant. `static` is sent when the epoch moved; `benched` controllers are not asked."""

    now: float
    wall: float
    epoch: int
    static: Static | None
    settings: list[tuple[Setting, Value]]
    samples: list[tuple[TargetId, str, float]]
    benched: list[str]


class Answer(Struct, frozen=True):
    """One controller's word on the last question. An empty `controller` ends the round."""

    controller: str = ""
    proposals: list[Proposal] = []
    error: str = ""


def question(snap: Snapshot, *, with_static: bool, benched: list[str]) -> Question:
    static = None
    if with_static:
        static = Static(
            snap.node,
            list(snap.groups.by_target.values()),
            list(snap.workloads.values()),
            list(snap.entitlements.values()),
            dict(snap.support),
            snap.strategy,
        )
    parts = (knob.part(w.namespace, w.name, p.name) for w in snap.workloads.values() for p in w.parts)
    targets = [TargetId("node"), *snap.workloads, *parts]
    latest = ((t, m, snap.readings.window(t, m, 0.0).last()) for t in targets for m in METRICS)
    samples = [(t, m, v) for t, m, v in latest if v is not None]
    return Question(snap.now, snap.wall, snap.epoch, static, list(snap.settings.items()), samples, benched)


def encode(value: Struct) -> bytes:
    body = msgspec.msgpack.encode(value, enc_hook=_spell)
    return len(body).to_bytes(HEADER, "big") + body


def decode(body: bytes, into: type[T]) -> T:
    return msgspec.msgpack.decode(body, type=into, dec_hook=_read)


def frames(buffer: bytearray) -> Iterator[bytes]:
    """Take every whole frame out of `buffer`; raises ValueError on a length that no peer of ours sends."""
    while len(buffer) >= HEADER:
        size = int.from_bytes(buffer[:HEADER], "big")
        if size > MOST_FRAME:
            raise ValueError(f"a frame of {size} bytes")
        if len(buffer) < HEADER + size:
            return
        yield bytes(buffer[HEADER : HEADER + size])
        del buffer[: HEADER + size]


def _spell(value: object) -> object:
    if isinstance(value, Quantity | Duration):
        return str(value)
    raise NotImplementedError(f"no encoder for {type(value)}")


def _read(into: type, raw: Any) -> object:
    if into in (Quantity, Duration):
        return into.parse(raw)
    raise NotImplementedError(f"no decoder for {into}")
