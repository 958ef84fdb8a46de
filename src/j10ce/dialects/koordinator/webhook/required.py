"""The labels that a cluster requires of pods: ConfigMap `pod-enhanced-validator-config`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import field
from msgspec.structs import replace

from j10ce.dialects.koordinator.names import SKIP_VALIDATION_LABEL
from j10ce.dialects.koordinator.reading import bearable, checked, read_text
from j10ce.errors import Finding
from j10ce.model.bounds import Several, Word, Words
from j10ce.model.parts.strict import Strict
from j10ce.model.text.near import one_of
from j10ce.policy.select import Labels

ENABLE: Final = "enable"
RULES: Final = "rules"
SWITCH: Final = {"true": True, "false": False}


class LabelRule(Strict, frozen=True, kw_only=True):
    name: Word = ""
    required_labels: Words = ()
    namespace_whitelist: Words = ()


class RequiredLabels(Strict, frozen=True, kw_only=True):
    enable: bool = False
    rules: Several[LabelRule] = field(default_factory=tuple)

    def missing(self, labels: Labels, namespace: str, had: Collection[str] | None = None) -> Iterator[Finding]:
        """Of a pod; `had` are the labels of one that is there already: what it never had, it may go on without."""
        if not self.enable or labels.get(SKIP_VALIDATION_LABEL) == "true":
            return
        for rule in self.rules:
            for label in rule.required_labels if namespace not in rule.namespace_whitelist else ():
                if label not in labels and (had is None or label in had):
                    problem = f"missing; rule {rule.name} requires it"
                    yield Finding(f"metadata.labels.{label}", None, problem, "label the pod")


NONE_REQUIRED: Final = RequiredLabels()


class ReadRules(NamedTuple):
    """None: they cannot be read."""

    rules: RequiredLabels | None
    findings: tuple[Finding, ...] = ()


def read_rules(data: Mapping[str, str]) -> ReadRules:
    """The texts of the ConfigMap: worth nothing with a switch that is neither on nor off, or a rule that is wrong."""
    strange = sorted(data.keys() - {ENABLE, RULES})
    findings = [Finding(key, None, "unknown key", one_of(key, (ENABLE, RULES))) for key in strange]
    text = data.get(ENABLE, "false")
    switch = SWITCH.get(text.strip().lower())
    if switch is None:
        findings.append(Finding(ENABLE, text, "neither on nor off", 'write "true" or "false"'))
    raw, odd = read_text(data.get(RULES, "[]"), RULES)
    value, wrong = checked({RULES: [] if raw is None else raw}, RequiredLabels, "")
    findings += [*odd, *wrong]
    if value is None or switch is None or not all(map(bearable, odd)):
        return ReadRules(None, tuple(findings))
    return ReadRules(replace(value, enable=switch), tuple(findings))
