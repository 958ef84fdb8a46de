"""Runs beside each other: every policy, every seed, and everything that might be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from j10ce.errors import Finding, Invalid
from j10ce.sim.cluster.given.arrivals import Arrival, arrivals
from j10ce.sim.cluster.given.scenario import Scenario
from j10ce.sim.cluster.given.source import checked
from j10ce.sim.cluster.given.what_if import changed
from j10ce.sim.cluster.outcome import PolicyOutcome, RunResult, outcome
from j10ce.sim.cluster.policies import scheduler_of
from j10ce.sim.cluster.replay import Replay

Coming = Callable[[Mapping[str, float]], Iterator[Arrival]]  # by the SLOs that are others than they were


class Subject(NamedTuple):
    """What is simulated. `coming`: who comes, where the scenario itself does not say."""

    scenario: Scenario
    coming: Coming | None = None

    def arrivals(self, scenario: Scenario, seed: int) -> Iterator[Arrival]:
        """`scenario`: this one, or what a what-if made of it."""
        if self.coming is None:
            return arrivals(scenario, seed)
        before = self.scenario.classes
        return self.coming({name: of.slo for name, of in scenario.classes.items() if of.slo != before[name].slo})


class RunStep(NamedTuple):
    """How far all runs have come."""

    what_if: str
    policy: str
    seed: int
    share: float  # of this run


Follow = Callable[[RunStep], None]


def simulate(raw: object, policy: str = "lazy", seed: int = 1) -> RunResult:
    """One run of a scenario that is plain data; raises Invalid with all that is wrong with it."""
    scenario, findings = checked(raw)
    if scenario is None or findings:
        raise Invalid(findings, "scenario")
    return _run(Subject(scenario), scenario, RunStep("", policy, seed, 0.0), lambda _: None)


def compared(
    subject: Subject, policies: Sequence[str], seeds: Sequence[int], what_ifs: Sequence[str], follow: Follow
) -> list[PolicyOutcome]:
    """As it is, and under each what-if by itself. Everything is checked before anything runs."""
    variants = {"": subject.scenario, **_variants(subject.scenario, what_ifs)}
    for policy in policies:
        for scenario in variants.values():
            scheduler_of(policy, scenario)
    outcomes = list[PolicyOutcome]()
    for what_if, scenario in variants.items():
        for policy in policies:
            steps = (RunStep(what_if, policy, seed, 0.0) for seed in seeds)
            outcomes.append(outcome(what_if, policy, [_run(subject, scenario, step, follow) for step in steps]))
    return outcomes


def _variants(scenario: Scenario, what_ifs: Sequence[str]) -> dict[str, Scenario]:
    findings, variants = list[Finding](), dict[str, Scenario]()
    for what_if in what_ifs:
        try:
            variants[what_if] = changed(scenario, [what_if])
        except Invalid as e:
            findings += e.findings
    if findings:
        raise Invalid(findings, "what-if")
    return variants


def _run(subject: Subject, scenario: Scenario, step: RunStep, follow: Follow) -> RunResult:
    replay = Replay(scenario, subject.arrivals(scenario, step.seed), scheduler_of(step.policy, scenario), step.seed)
    horizon, next_at = scenario.horizon.seconds, 0.0
    for at in replay.instants_of():
        if next_at <= at < horizon:
            next_at = at + horizon / 100
            follow(step._replace(share=at / horizon))
    follow(step._replace(share=1.0))
    return replay.result()
