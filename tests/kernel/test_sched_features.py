"""Features of the scheduler: words of one file, each an instance of one knob of the node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.node.estate import NodeEstate
from j10ce.kernel.node.features import SchedFeatures
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import NODE, ROOT, Setting
from j10ce.model.plan import Applied, Bound, Plan, Proposal, Rank, Refused
from j10ce.model.snapshot import Groups, Snapshot
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from j10ce.testing.fake_kernel import FakeKernel

NOBODY = 65534
WORDS = "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY TTWU_QUEUE"


class Listening(SchedFeatures):
    """With the kernel's side of its file: a word that is written takes the place of the one that it is about."""

    def _say(self, path: Path, word: str) -> None:
        name = word.removeprefix("NO_")
        path.write_text(" ".join(word if w.removeprefix("NO_") == name else w for w in path.read_text().split()) + "\n")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "debug/sched/features"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(f"{WORDS}\n")
        self.folder, self.cgroups = folder, FakeKernel()
        self.start()

    def start(self) -> None:
        journal = Journal.open(self.folder / "journal", "this boot")
        backends = [self.cgroups, Listening(self.folder / "debug")]
        self.kernel = Kernel(self.cgroups, backends, journal, guard=Guard(), estates=[NodeEstate()])
        self.kernel.track([])

    def decide(self, **features: bool) -> Plan:
        self.kernel.track([])
        snap = build.snapshot(groups=Groups({ROOT: build.group("", owned=False)}))
        kernel = self.kernel
        snap = Snapshot(
            snap.now, snap.wall, snap.node, snap.groups, snap.readings,
            settings=kernel.settings, support=kernel.support, pieces=kernel.pieces,
        )  # fmt: skip
        wishes = [
            Proposal(feature(name), Bound.WANT, float(on), "test", Rank.POLICY, "a test wants it")
            for name, on in features.items()
        ]
        return arbitrate(wishes, snap, (), kernel.quantise, originals=kernel.owed)

    def run(self, **features: bool) -> list[str]:
        """Why the kernel refused."""
        return [r.reason for _, r in self.kernel.apply(self.decide(**features)).refused()]

    def words(self) -> str:
        return self.path.read_text().strip()


def feature(name: str) -> Setting:
    return Setting(NODE, "sched.features", name)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_one_feature_is_switched_and_the_others_stay(bench: Bench) -> None:
    assert bench.run(NEXT_BUDDY=True) == []
    assert bench.words() == "GENTLE_FAIR_SLEEPERS NEXT_BUDDY TTWU_QUEUE"
    assert bench.decide(NEXT_BUDDY=True).empty


def test_nobody_asks_any_more_and_it_is_as_it_was_also_after_a_kill(bench: Bench) -> None:
    bench.run(NEXT_BUDDY=True, TTWU_QUEUE=False)
    bench.start()
    assert bench.run() == []
    assert bench.words() == WORDS


def test_a_feature_that_this_kernel_lacks_is_named_and_the_others_are_set(bench: Bench) -> None:
    assert bench.run(BRAVE_NEW_FEATURE=True, TTWU_QUEUE=False) == ["there is no sched.features[BRAVE_NEW_FEATURE] here"]
    assert bench.words() == "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY NO_TTWU_QUEUE"


def test_without_debugfs_it_says_what_to_mount(tmp_path: Path) -> None:
    (offered,) = SchedFeatures(tmp_path).knobs().values()
    assert not offered.ok
    assert "mount -t debugfs" in offered.needs


@contextmanager
def without_rights() -> Iterator[None]:
    """As nobody, who comes back; who is not root has no rights as it is."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_whoever_may_not_look_into_debugfs_hears_that_it_takes_root() -> None:
    with TemporaryDirectory() as folder:  # pytest's own nobody else may enter
        Path(folder).chmod(0o755)
        (root := Path(folder) / "debug").mkdir(mode=0)
        with without_rights():
            (offered,) = SchedFeatures(root).knobs().values()
    assert not offered.ok
    assert offered.needs == f"{root} to be readable: root"


def test_the_file_of_older_kernels_serves_as_well(tmp_path: Path) -> None:
    (tmp_path / "sched_features").write_text(WORDS)
    features = Listening(tmp_path)
    at = NodeEstate().place(NODE)
    assert at is not None
    assert features.instances("sched.features", at) == ("GENTLE_FAIR_SLEEPERS", "NEXT_BUDDY", "TTWU_QUEUE")
    assert features.write(feature("NEXT_BUDDY"), 1.0, at) == Applied(1.0)
    assert isinstance(features.write(feature("NEXT_BUDDY"), 2.0, at), Refused)
