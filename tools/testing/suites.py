"""The suites, and which of them each verb of the Makefile runs.

Stages run one after the other, the lanes of a stage side by side, the suites of a lane one after the other. `shares`
and `shares-long` measure shares of this machine's CPUs, so nothing runs beside them; guests measure inside, and the
rest mostly wait.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

PYTEST: Final = (sys.executable, "-m", "pytest", "-v")
GUEST: Final = (sys.executable, "-m", "tests.lab", "pytest")
NO_LAB: Final = {"J10CE_LAB_CACHE": "none"}  # a test that needs the lab and is not marked so is found out


class Suite(NamedTuple):
    name: str
    holds: str
    usual_s: int  # on two CPUs, until a run on this machine is remembered
    command: tuple[str, ...]
    where: tuple[str, ...] = ()  # replaced by the names of single tests when they are tried again
    spread: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}


Lane = Sequence[Suite]
Stage = Sequence[Lane]

# What runs beside the host's tests gives way to them: they are the ones with processes to wait for.
QUICK = Suite(
    "quick",
    "pure tests, fakes, the embedded control plane, the docs",
    270,
    (
        "nice",
        "-n5",
        *PYTEST,
        "-m",
        "not host and not vm and not vm_systemd and not kube and not lab and not slow and not soak",
    ),
    spread=("-n2",),
    environ=NO_LAB,
)
HOST = Suite(
    "host",
    "agent, command line and the docs' commands on this machine's cgroups",
    420,
    (*PYTEST, "-m", "host and not kube and not lab and not slow", "--ignore=tests/enforce"),
    environ=NO_LAB,
)
SHARES = Suite(
    "shares",
    "what each knob does, measured by this kernel's counters",
    130,
    (*PYTEST, "-m", "host and not lab and not slow"),
    ("tests/enforce",),
    environ=NO_LAB,
)
SHARES_LONG = Suite(
    "shares-long",
    "of the same those that take half a minute each",
    150,
    (*PYTEST, "-m", "host and slow and not lab"),
    ("tests/enforce",),
    environ=NO_LAB,
)
GUEST_V2 = Suite(
    "guest-v2",
    "cgroup v2 in a virtual machine",
    570,
    (*GUEST, "--", "-v", "-m", "(host or vm) and not real_cpus"),
    ("tests/enforce",),
)
GUEST_SYSTEMD = Suite(
    "guest-systemd",
    "systemd as the first process of a virtual machine",
    460,
    (*GUEST, "--systemd", "--", "-v", "-m", "vm_systemd"),
    ("tests/systemd",),
)
KUBE = Suite(
    "kube", "a current Kubernetes with a real node", 800, (*PYTEST, "-m", "kube and not soak"), ("tests/kube",)
)
FLEET = Suite("fleet", "etcd, fleets of hosts, two kubectls", 400, (*PYTEST, "-m", "lab and not kube and not soak"))
SLOW = Suite(
    "slow",
    "slow tests that need nothing but this machine",
    120,
    (*PYTEST, "-m", "slow and not lab and not kube and not soak", "--ignore=tests/enforce"),
)
COMPAT = Suite(
    "compat",
    "what depends on the version, on Kubernetes 1.20.2",
    500,
    (*PYTEST, "-m", "kube and not one_version and not soak"),
    ("tests/kube",),
    environ={"J10CE_KUBE_VERSION": "old"},
)
OTHER_LAYOUTS = [
    Suite(
        f"guest-{layout}",
        f"cgroup {layout} in a virtual machine",
        600,
        (*GUEST, "--cgroup", layout, "--", "-v", "-m", "host and not real_cpus"),
        ("tests/enforce",),
    )
    for layout in ("v1", "hybrid")
]
GUEST_CORES = Suite(
    "guest-cores",
    "two hyperthreads of a virtual machine, with a kernel that schedules by core (built first)",
    600,
    (*GUEST, "--hyperthreads", "--", "-v", "-m", "host"),
    ("tests/enforce/test_tasks.py",),
)
SOAK = Suite("soak", "long random runs; J10CE_SOAK scales them", 7200, (*PYTEST, "-m", "soak"))
EXAMPLES = Suite(
    "examples",
    "2,000 examples of every property",
    7200,
    (*PYTEST, "-m", "hypothesis and not slow and not kube and not lab", "--timeout", "3600"),
    spread=("-n2",),
    environ={"J10CE_EXAMPLES": "soak"},
)

VERBS: Final[Mapping[str, Sequence[Stage]]] = {
    "test": [[[QUICK], [HOST]], [[SHARES]]],
    "test-all": [[[GUEST_V2, GUEST_SYSTEMD], [KUBE], [FLEET, SLOW]], [[SHARES_LONG]]],
    "test-compat": [[[COMPAT]]],
    "test-long": [[[*OTHER_LAYOUTS, GUEST_CORES]], [[SOAK]], [[EXAMPLES]]],
}
NEXT: Final = {"test": "test-all", "test-all": "test-compat", "test-compat": "test-long"}


def chosen(verb: str, names: Sequence[str]) -> Sequence[Stage]:
    """The stages of a verb, or what is left of them when some suites are named."""
    stages = VERBS[verb]
    known = [suite.name for suite in suites_of(stages)]
    if unknown := sorted({*names} - {*known}):
        raise SystemExit(f"{verb}: no suite is called {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = {*(names or known)}
    lanes = [[[suite for suite in lane if suite.name in wanted] for lane in stage] for stage in stages]
    return [kept for stage in lanes if (kept := [lane for lane in stage if lane])]


def suites_of(stages: Sequence[Stage]) -> list[Suite]:
    return [suite for stage in stages for lane in stage for suite in lane]
