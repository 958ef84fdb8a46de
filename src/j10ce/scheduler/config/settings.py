"""A KubeSchedulerConfiguration, as what a scheduler is made of: profiles with their plugins, and how it behaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.errors import Finding, Invalid
from j10ce.scheduler.config.profiles import read_profile, read_struct
from j10ce.scheduler.config.registry import BUILTIN, NO_OTHERS, Registered
from j10ce.scheduler.config.sections import (
    API_VERSIONS,
    KIND,
    LeaderElectionSection,
    ProfileSection,
    SchedulerConfiguration,
)
from j10ce.scheduler.cycle.profile import Profile
from j10ce.scheduler.cycle.queue import Backoff

LONGEST_BACK_OFF_S: Final = 3600
WHAT: Final = "scheduler configuration"


class SchedulerSettings(NamedTuple):
    profiles: tuple[Profile, ...]
    election: LeaderElectionSection
    backoff: Backoff


def configured(
    raw: object,
    others: Mapping[str, Registered] = NO_OTHERS,
) -> SchedulerSettings:
    """`raw` is plain data of a file; `others` are plugins of other distributions. Raises Invalid with every finding."""
    config, findings = read_struct(raw, SchedulerConfiguration, "")
    if config is None:
        raise Invalid(findings or [Finding("", None, "no object", f"write a {KIND}")], WHAT)
    known = {**BUILTIN, **others}
    findings += [*_heads(config), *_behaviour(config)]
    profiles = list[Profile]()
    for n, section in enumerate(config.profiles):
        made, wrong = read_profile(section, f"profiles[{n}]", known)
        findings += wrong
        profiles += [made] if made is not None else []
    findings += _together(config.profiles, profiles)
    if findings:
        raise Invalid(findings, WHAT)
    return SchedulerSettings(
        tuple(profiles),
        config.leader_election,
        Backoff(float(config.pod_initial_backoff_seconds), float(config.pod_max_backoff_seconds)),
    )


# -- the file as a whole


def _heads(config: SchedulerConfiguration) -> Iterable[Finding]:
    if config.api_version not in API_VERSIONS:
        yield Finding(
            "apiVersion", config.api_version, "no version that is known", f"use one of {', '.join(API_VERSIONS)}"
        )
    if config.kind != KIND:
        yield Finding("kind", config.kind, "another kind", f"use {KIND}")
    for n, extender in enumerate(config.extenders):
        yield Finding(
            f"extenders[{n}]", extender.get("urlPrefix"), "no extender is asked",
            "leave it out: what ours does are the plugins Reservation and LoadAware",
        )  # fmt: skip


def _behaviour(config: SchedulerConfiguration) -> Iterable[Finding]:
    first, most = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if not 1 <= first <= LONGEST_BACK_OFF_S:
        yield Finding("podInitialBackoffSeconds", first, "no back-off", f"use 1 to {LONGEST_BACK_OFF_S}")
    elif not first <= most <= LONGEST_BACK_OFF_S:
        yield Finding("podMaxBackoffSeconds", most, "no back-off", f"use {first} to {LONGEST_BACK_OFF_S}")
    election = config.leader_election
    lease, renew, retry = (d.seconds for d in (election.lease_duration, election.renew_deadline, election.retry_period))
    if not lease > renew > retry > 0:
        yield Finding(
            "leaderElection", f"{lease:g} s, {renew:g} s, {retry:g} s", "durations that keep no lease",
            "leaseDuration must be longer than renewDeadline, and that longer than retryPeriod",
        )  # fmt: skip
    if not config.profiles:
        yield Finding("profiles", None, "none", "leave it out for the profile of Kubernetes, or write one")


def _together(sections: tuple[ProfileSection, ...], profiles: list[Profile]) -> Iterable[Finding]:
    """All profiles share one queue."""
    there = set[str]()
    for n, section in enumerate(sections):
        if section.scheduler_name in there:
            yield Finding(
                f"profiles[{n}].schedulerName", section.scheduler_name, "another profile has it", "rename one"
            )
        there.add(section.scheduler_name)
    sorts = [p.queue_sort.name for p in profiles if p.queue_sort is not None]
    for n, name in enumerate(sorts):
        if name != sorts[0]:
            hint = f"use {sorts[0]} in all: they share a queue"
            yield Finding(f"profiles[{n}].plugins.queueSort", name, "another than that of the first profile", hint)
