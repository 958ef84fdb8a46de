"""What Koordinator's webhooks do, behind ours: profiles applied to new pods, rules for pods, a ConfigMap checked.

All replicas answer, from what they hold in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from zlib import crc32

import structlog

from j10ce.dialects.koordinator.config.conflicts import refusals
from j10ce.dialects.koordinator.names import BATCH_CPU, SKIP_UPDATE_RESOURCES
from j10ce.dialects.koordinator.native.strategies import generated
from j10ce.dialects.koordinator.overrides import chosen
from j10ce.dialects.koordinator.webhook.mutate import PriorityClass, mutate
from j10ce.dialects.koordinator.webhook.profile import ColocationProfile, read_profile
from j10ce.dialects.koordinator.webhook.required import NONE_REQUIRED, RequiredLabels, read_rules
from j10ce.dialects.koordinator.webhook.validate import oddities, validate
from j10ce.errors import Finding, Invalid, Unreachable
from j10ce.kube.client import KubeClient
from j10ce.manager.kube.koordinator.follow import Following
from j10ce.manager.kube.koordinator.strategies import ConfigMapName, following, read
from j10ce.model.kube.native import Node
from j10ce.policy.select import Labels

log = structlog.get_logger()
PROFILES_PATH: Final = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
PRIORITIES_PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
REQUIRED_LABELS: Final = "pod-enhanced-validator-config"  # a ConfigMap beside the other one
Raw = dict[str, Any]


class Mutated(NamedTuple):
    pod: Raw
    warnings: tuple[str, ...] = ()


class ReadProfiles(NamedTuple):
    """Profiles and priorities as they were read, and at which changes of both."""

    epochs: tuple[int, int]
    profiles: tuple[ColocationProfile, ...]
    priorities: Mapping[str, PriorityClass]


class KoordinatorRules:
    """`namespaces` are the labels of one that is known, else None; `nodes` are all that there are."""

    def __init__(
        self,
        client: KubeClient,
        namespaces: Callable[[str], Labels | None],
        nodes: Callable[[], Iterable[Node]],
        where: ConfigMapName,
    ) -> None:
        self.profiles, self.priorities = Following(client, PROFILES_PATH), Following(client, PRIORITIES_PATH)
        self.labels = following(client, where._replace(name=REQUIRED_LABELS))
        self._namespaces, self._nodes, self._where = namespaces, nodes, where
        self._known: ReadProfiles | None = None
        self._required, self._required_at = NONE_REQUIRED, -1

    async def run(self) -> None:
        """Follow profiles, priorities and labels that are required, for ever. Without their CRD there is no profile."""
        async with asyncio.TaskGroup() as group:
            for following in (self.profiles, self.priorities, self.labels):
                group.create_task(following.run())

    @property
    def answered(self) -> tuple[asyncio.Event, ...]:
        """What is to be waited for before pods are judged."""
        return self.profiles.answered, self.priorities.answered, self.labels.answered

    def speaks_of(self, labels: Labels) -> bool:
        """Whether a pod says its class in Koordinator's words: no other default counts then."""
        return bool(chosen(labels, None)[0])

    def mutated(self, uid: str, namespace: str, pod: Raw) -> Mutated:
        """Raises Invalid where it cannot be created, Unreachable while profiles are being read."""
        known = self._read()
        labels = self._namespaces(namespace)
        if labels is None:
            raise Unreachable(f"namespace {namespace} is not known yet")
        lends = any(BATCH_CPU in node.status.allocatable for node in self._nodes())
        draw = partial(_draw, uid)
        made = mutate(pod, labels, known.profiles, known.priorities, draw, keep_resources=not lends)
        if made.refused is not None:
            raise Invalid([made.refused], f"Pod {namespace}/{_name(pod)}")
        return Mutated(made.pod, tuple(map(str, made.findings)))

    def check_pod(self, namespace: str, pod: Raw, old: Raw | None) -> tuple[str, ...]:
        """What is odd about it. Raises Invalid with all reasons to refuse it, Unreachable where not all are known."""
        refused = validate(pod, old, namespace=namespace, required=self._required_labels())
        if refused:
            raise Invalid([r.finding for r in refused], f"Pod {namespace}/{_name(pod)}")
        if not self.labels.synced.is_set():
            raise Unreachable("labels that are required are still being read")
        return tuple(map(str, oddities(pod))) if old is None else ()

    def check_config(self, namespace: str, name: str, raw: Raw, old: Raw | None) -> tuple[str, ...]:
        """What will not be heeded. Raises Invalid with all reasons to refuse it; other ConfigMaps are not judged.

        Keys that an update does not touch are not judged again: one old mistake must not keep others from being mended.
        """
        if (namespace, name) == self._where._replace(name=REQUIRED_LABELS):
            return _check_labels(raw, f"ConfigMap {namespace}/{name}")
        if (namespace, name) != self._where:
            return ()
        fresh, before = _texts(raw), _texts(old or {})
        changed = {key: text for key, text in fresh.items() if before.get(key) != text}
        nodes = {node.metadata.name: node.metadata.labels for node in self._nodes()}
        wrong = [_with_reason(r.finding, r.reason) for r in refusals(changed, nodes)]
        if wrong:
            raise Invalid(wrong, f"ConfigMap {namespace}/{name}")
        made = generated(changed)
        return tuple(str(f) for f in (*made.findings, *made.notes))

    def _required_labels(self) -> RequiredLabels:
        """As they were last written right; none where the ConfigMap is not there."""
        if self._required_at != self.labels.changed.epoch:
            self._required_at = self.labels.changed.epoch
            rules, findings = read_rules(read(self.labels.held.get(REQUIRED_LABELS)).data or {})
            for finding in findings:
                log.warning("koordinator.labels", config_map=REQUIRED_LABELS, error=str(finding))
            self._required = self._required if rules is None else rules
        return self._required

    def _read(self) -> ReadProfiles:
        if not (self.profiles.synced.is_set() and self.priorities.synced.is_set()):
            raise Unreachable("profiles and priority classes are still being read")
        epochs = self.profiles.changed.epoch, self.priorities.changed.epoch
        if self._known is None or self._known.epochs != epochs:
            priorities = {name: _priority(raw) for name, raw in self.priorities.held.items()}
            self._known = ReadProfiles(epochs, tuple(_profiles(self.profiles.held)), priorities)
        return self._known


def _check_labels(raw: Raw, what: str) -> tuple[str, ...]:
    rules, findings = read_rules(_texts(raw))
    if rules is None:
        raise Invalid([*findings], what)
    return tuple(map(str, findings))


def _profiles(held: Mapping[str, Raw]) -> Iterable[ColocationProfile]:
    for name, raw in held.items():
        annotations = raw.get("metadata", {}).get("annotations") or {}
        keeps = annotations.get(SKIP_UPDATE_RESOURCES) == "true"
        profile, findings = read_profile(name, raw.get("spec") or {}, keeps_resources=keeps)
        for finding in findings:
            log.warning("koordinator.profile", profile=name, error=str(finding))
        if profile is not None:
            yield profile


def _priority(raw: Raw) -> PriorityClass:
    return PriorityClass(int(raw.get("value", 0)), str(raw.get("preemptionPolicy", "")))


def _draw(uid: str, profile: str) -> int:
    """One of 0 to 99, the same however often one request is asked."""
    return crc32(f"{uid}/{profile}".encode()) % 100


def _texts(raw: Raw) -> dict[str, str]:
    data = raw.get("data") or {}
    return {key: text for key, text in data.items() if isinstance(text, str)}


def _with_reason(finding: Finding, reason: str) -> Finding:
    return finding._replace(problem=f"{reason}: {finding.problem}")


def _name(pod: Raw) -> str:
    meta = pod.get("metadata", {})
    return str(meta.get("name") or meta.get("generateName", ""))
