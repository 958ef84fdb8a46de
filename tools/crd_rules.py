"""What CRDs say beyond the shapes of the model: ranges, spellings, and rules between fields.

`policy/validation/validate.py` is the truth; this repeats what a schema can say of it, so that an API server alone
refuses most mistakes. tests/kube/crd tries both with the same objects.
"""

from __future__ import annotations

from typing import Any, Final

from j10ce.model.bounds import MOST_WHY
from j10ce.model.knob import KNOBS
from j10ce.model.parts.devices import MOST_DEVICES
from j10ce.model.parts.strategy import MOST_PROFILES, Strategy
from j10ce.policy.profiles import builtin
from j10ce.policy.strategy import ASCENDING
from j10ce.policy.validation.sections import (
    KERNEL_PRIORITIES,
    MOST_IOPS,
    OWN_CPUS,
    PROTECTED,
    WATERMARK_ADJUSTS,
    WATERMARK_SCALES,
)
from j10ce.policy.validation.strategy import RANGES, SOME_TIME
from j10ce.policy.validation.validate import MOST_PRIORITY, MOST_UNITS

Json = dict[str, Any]

# No look-ahead: the API server's regular expressions are RE2.
NUMBER: Final = r"[+]?([0-9]{1,19}(\.[0-9]{0,12})?|\.[0-9]{1,12})"
PLAIN_AMOUNT: Final = rf"^{NUMBER}([eE][+-]?[0-9]{{1,2}}|[numkMGTPE]|[KMGTPE]i)?$"
AMOUNT: Final = rf"^{NUMBER}([eE][+-]?[0-9]{{1,2}}|[numkMGTPE]|[KMGTPE]i|[kKMGT]?bit)?$"
SHARE: Final = r"^[+]?(0*100(\.0*)?|0*[0-9]{1,2}(\.[0-9]{0,12})?|\.[0-9]{1,12})%$"
QUANTITY: Final = rf"{AMOUNT}|{SHARE}"
DURATION: Final = r"^([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,9}(\.[0-9]{1,6})?s)?$"
LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LABEL_KEY: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
STEP: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME: Final = rf"{STEP}(\.{STEP})*"
_LETTER: Final = r"[^/\x00-\x1f\x7f]"
_FIRST: Final = r"[^/.\x00-\x1f\x7f]"
PATH_STEP: Final = rf"({_FIRST}{_LETTER}*|\.{_FIRST}{_LETTER}*|\.\.{_LETTER}+)"  # neither . nor ..
TARGET: Final = rf"^(node|group/|group(/{PATH_STEP})+|workload/{STEP}/{NAME}|part/{STEP}/{NAME}/{NAME})$"
KNOB: Final = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"  # a list of names would refuse those of a later release
SCHED_FEATURE: Final = r"^(NO_)?[A-Za-z][A-Za-z0-9_]{0,60}$"

PERCENT: Final[Json] = {"minimum": 0, "maximum": 100}
NOT_ZERO: Final[Json] = {"allOf": [{"pattern": "[1-9]"}]}
COUNTER: Final[Json] = {"minimum": 0, "maximum": 2**53}
LABELS: Final[Json] = {"additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE}}
RATE: Final[Json] = {"minimum": 1, "pattern": PLAIN_AMOUNT, **NOT_ZERO}
SOME: Final[Json] = {"minimum": 1, "pattern": QUANTITY, **NOT_ZERO}

NO_RATE: Final[Json] = {"pattern": rf"{PLAIN_AMOUNT}|{SHARE}"}
# As metav1.Condition has it.
CONDITION_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION: Final[Json] = {
    "type": {"maxLength": 316, "pattern": CONDITION_TYPE},
    "reason": {"minLength": 1, "maxLength": 1024, "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    "message": {"maxLength": 32768},
    "observedGeneration": {"minimum": 0},
}


def holder(path: str) -> str:
    """The structure that has the field at a path of a strategy."""
    of: Any = Strategy()
    for step in path.split(".")[:-1]:
        of = getattr(of, of.__struct_fields__[of.__struct_encode_fields__.index(step)])
    return type(of).__name__


def last(path: str) -> str:
    return path.rpartition(".")[2]


WEIGHT: Final[Json] = {"minimum": int(KNOBS["cpu.weight"].low), "maximum": int(KNOBS["cpu.weight"].high)}

# Structure and field as JSON spells it -> what its schema says besides its type, or, with a type, instead of it.
FIELDS: Final[dict[tuple[str, str], Json]] = {
    ("QoSProfileSpec", "priority"): {"minimum": -MOST_PRIORITY, "maximum": MOST_PRIORITY},
    **{(cpu, "weight"): WEIGHT for cpu in ("CpuSection", "CpuOverlay")},
    **{(cpu, "burst"): {"type": "string", "pattern": SHARE} for cpu in ("CpuSection", "CpuOverlay")},
    **{
        (memory, name): PERCENT
        for memory in ("MemorySection", "MemoryOverlay")
        for name in ("minPercent", "lowPercent", "throttlingPercent", "watermarkPercent")
    },
    **{
        (memory, name): {"minimum": low, "maximum": high}
        for memory in ("MemorySection", "MemoryOverlay")
        for name, (low, high) in {
            "oomPriority": (-1000, 1000),
            "watermarkScale": WATERMARK_SCALES,
            "watermarkAdjust": WATERMARK_ADJUSTS,
            "kernelPriority": KERNEL_PRIORITIES,
        }.items()
    },
    **{(memory, "pageCacheLimit"): NO_RATE for memory in ("MemorySection", "MemoryOverlay")},
    ("ReclaimSection", "targetPressure"): PERCENT,
    ("IoSection", "weight"): {"minimum": 1, "maximum": 10_000},
    ("IoSection", "readLimit"): RATE,
    ("IoSection", "writeLimit"): RATE,
    ("IoSection", "latency"): NOT_ZERO,
    **{("IoSection", name): {"minimum": 1, "maximum": MOST_IOPS} for name in ("readIopsLimit", "writeIopsLimit")},
    **{("DiskOverlay", name): {"minimum": 1, "maximum": MOST_IOPS} for name in ("readIops", "writeIops")},
    **{(of, "ceiling"): SOME for of in ("NetworkSection", "NetworkDirection")},
    **{("LinkOverlay", direction): SOME for direction in ("egress", "ingress")},
    **{("DiskOverlay", name): RATE for name in ("readBps", "writeBps")},
    ("LinksSection", "links"): {"maxProperties": MOST_DEVICES},
    ("DisksSection", "disks"): {"maxProperties": MOST_DEVICES},
    ("CacheSection", "llcStartPercent"): PERCENT,
    ("CacheSection", "llcEndPercent"): PERCENT,
    ("CacheSection", "memoryBandwidthPercent"): {"minimum": 1, "maximum": 100},
    ("Rollout", "canaryPercent"): PERCENT,
    ("Rollout", "attempt"): COUNTER,
    ("Selector", "matchLabels"): LABELS,
    ("Requirement", "key"): {"maxLength": 317, "pattern": LABEL_KEY},
    ("Requirement", "values"): {"items": LABELS["additionalProperties"]},
    ("MinimalReservationPolicySpec", "minimum"): {"minProperties": 1},
    ("MinimalReservationPolicySpec", "units"): {"minimum": 0, "maximum": MOST_UNITS},
    ("MinimalReservationPolicySpec", "ttl"): NOT_ZERO,
    ("Lending", "within"): NOT_ZERO,
    ("NodeStrategySpec", "priority"): {"minimum": -MOST_PRIORITY, "maximum": MOST_PRIORITY},
    ("NodeStrategySpec", "profiles"): {"maxProperties": MOST_PROFILES},  # the cost of rules below is estimated by it
    **{(holder(path), last(path)): {"minimum": low, "maximum": high} for path, (low, high) in RANGES.items()},
    **{(holder(path), last(path)): NOT_ZERO for path in SOME_TIME},
    ("SuppressSection", "bufferCpus"): {"pattern": PLAIN_AMOUNT},
    ("SystemCpusSection", "cpus"): {"pattern": r"^\s*\d{1,5}(-\d{1,5})?(\s*,\s*\d{1,5}(-\d{1,5})?)*\s*$"},
    ("SysctlSection", "schedFeatures"): {"items": {"type": "string", "maxLength": 64, "pattern": SCHED_FEATURE}},
    ("OvercommitSection", "difference"): {"minimum": 0, "maximum": 1},
    ("HostApplication", "name"): {"minLength": 1, "maxLength": 253, "pattern": f"^{NAME}$"},
    ("HostApplication", "cgroup"): {"minLength": 1, "pattern": f"^{PATH_STEP}(/{PATH_STEP})*$"},
    ("HostApplication", "profile"): {"maxLength": 253},
    ("NodeQoSSpec", "labels"): LABELS,
    ("HoldSpec", "target"): {"pattern": TARGET},
    # Lengths, too: the rule that each is named once has its cost estimated by them.
    ("HoldSpec", "knobs"): {
        "minItems": 1,
        "maxItems": 64,
        "items": {"type": "string", "maxLength": 64, "pattern": KNOB},
    },
    ("HoldSpec", "node"): {"maxLength": 253, "pattern": rf"^({NAME})?$"},
    ("HoldSpec", "why"): {"maxLength": MOST_WHY, "pattern": r"\S"},
    **{("Minimum", name): NO_RATE for name in ("cpu", "memory", "diskRead", "diskWrite")},
    ("PolicyRevision", "revision"): COUNTER | {"minimum": 1},
}

_YIELDING: Final = sorted({"standard", "besteffort"} - {tier.value for tier in PROTECTED})
_BUILT_IN: Final = [profile.metadata.name for profile in builtin()]
_DISPLAYED: Final = [name.replace("-", "") for name in _BUILT_IN]
_FLOORS: Final = ("cpu", "memory", "network", "diskRead", "diskWrite")


def _not_a_share(field: str) -> str:
    return f"(!has({field}) || type({field}) == int || !{field}.endsWith('%'))"


LOW_BESIDE_MIN: Final = (
    "!has(self.minPercent) || !has(self.lowPercent) || self.lowPercent >= self.minPercent",
    "lowPercent: below minPercent it changes nothing, leave it out or raise it",
)


def ordered(structure: str) -> list[tuple[str, str]]:
    """The rules between fields of one part of a strategy."""
    here = [(last(o.low), last(o.high), o) for o in ASCENDING if holder(o.low) == structure]
    return [
        (
            f"!has(self.{low}) || !has(self.{high}) || self.{low} {'<=' if order.equal else '<'} self.{high}",
            f"{low} must {'not be above' if order.equal else 'be below'} {high}: lower it, or raise the other",
        )
        for low, high, order in here
    ]


# Structure -> (rule in CEL, what to do when it does not hold).
RULES: Final[dict[str, list[tuple[str, str]]]] = {
    **{structure: ordered(structure) for structure in {holder(order.low) for order in ASCENDING}},
    "QoSProfile": [
        (
            f"!(self.metadata.name.replace('-', '') in {_DISPLAYED}) || self.metadata.name in {_BUILT_IN}",
            "metadata.name is another spelling of a built-in profile: choose another name",
        ),
    ],
    "QoSProfileSpec": [
        (
            f"self.tier in {_YIELDING} || !(self.cpu.idle || self.cpu.suppressible)",
            "cpu.idle and cpu.suppressible: this tier is never held back, use tier standard or besteffort",
        ),
        (
            f"!(self.cpu.latency == 'realtime' || self.cpu.pinning in {list(OWN_CPUS)})"
            " || !(self.tier == 'besteffort' || self.cpu.idle || self.cpu.suppressible)",
            "cpu.latency and cpu.pinning: who gives way to others can have no CPU for itself, use a better tier",
        ),
        (
            f"!has(self.cpu.bind) || self.cpu.pinning in {list(OWN_CPUS)}",
            "cpu.bind: it has no CPUs of its own, use pinning reserved or exclusive",
        ),
    ],
    "OvercommitSection": [
        ("!has(self.difference) || self.difference > 0.0", "difference: out of range, use more than 0"),
    ],
    "MemorySection": [LOW_BESIDE_MIN],
    "MemoryOverlay": [LOW_BESIDE_MIN],
    "CacheSection": [
        (
            "(has(self.llcStartPercent) ? self.llcStartPercent : 0)"
            " < (has(self.llcEndPercent) ? self.llcEndPercent : 100)",
            "llcStartPercent must be below llcEndPercent: leave at least one percent",
        ),
    ],
    "Requirement": [
        (
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "values: In and NotIn need at least one, Exists and DoesNotExist take none",
        ),
    ],
    "MinimalReservationPolicySpec": [
        (
            "self.units == 0 || " + " && ".join(_not_a_share(f"self.minimum.{name}") for name in _FLOORS),
            "minimum: a percentage is not allowed with units, which are held before a node is known: write an amount",
        ),
    ],
    "Lending": [
        ("self.mode != 'None' || !has(self.within)", "within: nothing is lent, set mode to Reclaimable"),
    ],
    "PolicyRevision": [
        (
            "self.revision == oldSelf.revision && self.data == oldSelf.data",
            "history is not rewritten: apply the policy",
        ),
    ],
    "HoldSpec": [
        (
            "self.target != 'group/' || !has(self.value)",
            "value: the root's own settings are never written, leave it out",
        ),
        ("self.knobs.all(k, self.knobs.exists_one(other, other == k))", "knobs: name each knob once"),
    ],
}
