"""A class name has one meaning within a process: among all modules that its main module comes to import."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePath

import pytest

from j10ce.cli.main import COMMANDS
from tests.style.sources import Source, product

# Named as the format that they read or write names them, and where that is.
OF_A_FORMAT = {
    "PodSpec": {"model.kube.pod", "agent.sync.daemonset"},  # of a pod that runs, and of what a DaemonSet would make
    "Workload": {"model.kinds", "model.workload"},  # as users write it, and what an agent manages because of it
}
# The same part of several back ends or front ends, which do not see each other.
OF_EACH_END = {
    "Feed": {"store.etcd.feed", "store.kube.feed"},
    "Health": {"manager.telemetry.health", "manager.grpc.health"},
    "Writer": {"store.etcd.writer", "store.sqlite.writer"},
}
# Words of scheduling, as Kubernetes has them, beside those of the ring on a node: only `sim` comes to import both.
OF_SCHEDULING = {
    "Asked": {"scheduler.cycle.profile", "scheduler.plugins.qos.admission"},
    "Asking": {"policy.entitlement.resolve", "scheduler.cycle.engine"},
    "Band": {"dialects.koordinator.classes", "scheduler.cycle.outlook"},
    "Book": {"policy.entitlement.claims", "scheduler.book.book"},
    "Choice": {"policy.choose", "scheduler.cycle.engine"},
    "Group": {"model.snapshot", "scheduler.cycle.queue"},
    "Groups": {"model.snapshot", "scheduler.cycle.framework"},
    "NodeFacts": {"model.machine.facts", "scheduler.book.facts"},
    "Pending": {"model.plan", "scheduler.cycle.scheduler"},
    "Refused": {"model.plan", "scheduler.cycle.framework"},
    "Rival": {"control.cpu.rivals", "scheduler.plugins.classic.standing"},
    "Strategy": {"model.parts.strategy", "scheduler.plugins.resources.strategies"},
    "Units": {"kernel.systemd.units", "scheduler.book.units"},
    "Wish": {"plan.explanation.explain", "scheduler.plugins.classic.rules"},
}
KNOWN = {
    name: {f"j10ce.{home}" for home in homes} for name, homes in (OF_A_FORMAT | OF_EACH_END | OF_SCHEDULING).items()
}


def modules() -> dict[str, Source]:
    """By the name that imports use."""
    named = ((PurePath(source.path).with_suffix("").parts[1:], source) for source in product())
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): source for parts, source in named}


def reached(mains: Iterable[str]) -> dict[str, Source]:
    """All modules that a process can come to import."""
    known, reached, ahead = modules(), dict[str, Source](), list(mains)
    while ahead:
        name = ahead.pop()
        if name in known and name not in reached:
            reached[name] = known[name]
            ahead += imports(known[name])
    return reached


def imports(source: Source) -> Iterator[str]:
    for node in source.nodes():
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def commands() -> set[str]:
    """The modules of the commands, which the CLI's main module imports by name when one is used."""
    return {f"j10ce.cli.{module}" for module, _ in COMMANDS.values()}


PROCESSES = {
    "agent": {"j10ce.agent.main"},
    "manager": {"j10ce.manager.main"},
    "scheduler": {"j10ce.scheduler.process.main"},
    "cli": {"j10ce.cli.main"} | commands(),
}


@cache
def twice(process: str) -> dict[str, list[str]]:
    """The modules of each class that several of a process define."""
    where = defaultdict[str, list[str]](list)
    for name, source in reached(PROCESSES[process]).items():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(name)
    assert len(where) > 200, "the process was not found"
    return {name: sorted(homes) for name, homes in where.items() if len(homes) > 1}


@pytest.mark.parametrize("process", PROCESSES)
def test_a_class_name_has_one_meaning_within_a_process(process: str) -> None:
    new = {name: homes for name, homes in twice(process).items() if not {*homes} <= KNOWN.get(name, set())}
    assert not new, "rename one of them; docs/glossary.md has the nouns"


def test_the_lists_hold_nothing_that_is_over() -> None:
    met = defaultdict[str, set[str]](set)
    for process in PROCESSES:
        for name, homes in twice(process).items():
            met[name].update(homes)
    assert met == KNOWN, "these have one meaning by now: take them off the list"
