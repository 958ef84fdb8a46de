"""Killed at any step of building and changing a tree: the link goes on, and whoever starts again ends as it should."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from j10ce.host.net.bpf import Map
from j10ce.host.net.netlink import Netlink
from j10ce.model.knob import share
from j10ce.model.plan import Change, Make, Plan
from tests.enforce.net.pods import DOORS, Pods, at_door, bridged, door
from tests.enforce.net.shaping import API, MBIT, SYNC, Shaped, rate, value

TEAM = share("default", "team")
BUILD: tuple[Change, ...] = (
    rate(1000 * MBIT),
    Make(TEAM, "default/team", ""),
    value(TEAM, "ceil", 300 * MBIT),
    value(API, "floor", 100 * MBIT),
    value(API, "priority", 1.0),
    value(SYNC, "share", TEAM),
)
CHANGE = (rate(500 * MBIT), value(SYNC, "share", ""), value(SYNC, "ceil", 50 * MBIT), value(API, "share", TEAM))


def ends(after: int, shaped: Shaped, changes: tuple[Change, ...]) -> bool:
    """Whether a process of its own was killed at its n-th step, before it was taken."""
    child = os.fork()
    if child == 0:
        steps = count()

        def dying(act: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any) -> Any:
                if next(steps) == after:
                    os.kill(os.getpid(), signal.SIGKILL)
                return act(*arguments)

            return step

        for owner, name in ((Netlink, "ask"), (Map, "put"), (Map, "drop")):
            setattr(owner, name, dying(getattr(owner, name)))
        shaped.start()
        shaped.kernel.apply(Plan(changes))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def classes(shaped: Shaped) -> list[str]:
    """Without their numbers, which depend on what was there before."""
    lines = shaped.netns.run("tc", "class", "show", "dev", "eth0").splitlines()
    return sorted(f" {line.partition(' rate ')[2]}" for line in lines)


@pytest.mark.parametrize("changes", [BUILD, CHANGE], ids=["building", "changing"])
def test_whoever_starts_again_ends_where_the_killed_one_would_have(shaped: Shaped, changes: tuple[Change, ...]) -> None:
    before = shaped.picture()
    for after in count():
        if changes is CHANGE:
            shaped.start()
            shaped.done(*BUILD)
        killed = ends(after, shaped, changes)
        shaped.send(shaped.places[API], count=1)  # the link carries what is sent, whatever stands there
        shaped.start()
        shaped.done(*changes)
        expected = ["500Mbit", "300Mbit", "100Mbit", "50Mbit"] if changes is CHANGE else ["1Gbit", "300Mbit", "100Mbit"]
        assert [n for n in expected if not any(f" {n} " in line for line in classes(shaped))] == [], classes(shaped)
        assert len(classes(shaped)) == 6  # the whole, others, system, the share and two workloads
        assert not shaped.kernel.revert().refused()
        assert shaped.picture() == before
        if not killed:
            return


def test_whoever_starts_again_ends_with_the_doors_that_the_killed_one_was_at(both_ways: Pods) -> None:
    shaped = both_ways.shaped
    bridged(both_ways.netns)
    both_ways.acquaint()
    changes = (
        *(rate(1000 * MBIT), rate(1000 * MBIT, "ingress")),
        *(value(API, "floor", 100 * MBIT), value(API, "floor", 100 * MBIT, "ingress"), door(API, DOORS[API])),
        *(at_door(API, "ingress", 800 * MBIT), at_door(API, "egress", 400 * MBIT)),
    )
    before = both_ways.picture()
    for after in count():
        killed = ends(after, shaped, changes)
        both_ways.send(API, 1)  # the pod is heard, whatever stands there
        shaped.start()
        shaped.done(*changes)
        passed = shaped.counted(API).packets
        both_ways.send(API, 10)
        assert shaped.counted(API).packets == passed + 10
        assert not shaped.kernel.revert().refused()
        assert both_ways.picture() == before
        if not killed:
            return


def everything(shaped: Shaped) -> str:
    hook = shaped.netns.run("tc", "filter", "show", "dev", "eth0", "ingress")
    return shaped.picture() + hook + re.sub(r"<\S*>|state \S+", "", shaped.netns.run("ip", "-o", "link", "show"))


def test_whoever_was_killed_over_what_comes_in_leaves_nothing_that_stays(shaped: Shaped) -> None:
    if needs := shaped.support["ingress"].needs:
        pytest.skip(f"Unsupported: what comes in needs {needs}")
    before = everything(shaped)
    changes = (rate(1000 * MBIT, "ingress"), value(API, "floor", 100 * MBIT, "ingress"))
    for after in count():
        killed = ends(after, shaped, changes)
        shaped.receive(shaped.places[API], count=3)  # what comes in arrives, whatever stands there
        shaped.start()
        shaped.done(*changes)
        shaped.receive(shaped.places[API], count=5)
        assert shaped.counted(API, "ingress").packets >= 5
        assert not shaped.kernel.revert().refused()
        assert everything(shaped) == before
        if not killed:
            return
