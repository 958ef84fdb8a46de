"""On every node, all generated NodeStrategies together say what the ConfigMap's own layers say there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.annotations.node import NodeSays
from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.keys import SHAPES, read_key
from j10ce.dialects.koordinator.config.layers import Layered, NodeWords, effective
from j10ce.dialects.koordinator.config.ratios import CpuNormalization
from j10ce.dialects.koordinator.native.node_layers import KnownNode
from j10ce.dialects.koordinator.native.sections import normalization
from j10ce.dialects.koordinator.native.strategies import generated
from j10ce.dialects.koordinator.native.translate import TRANSLATORS, fitted, translated
from j10ce.model.parts.strategy import Strategy
from j10ce.policy import strategy as native
from j10ce.policy.document.document import HOSTNAME_LABEL
from j10ce.policy.validation.validate import validate

PERCENT = st.integers(0, 100)
SWITCH = st.booleans()
MEMORY = {"enable": SWITCH, "minLimitPercent": PERCENT, "lowLimitPercent": PERCENT, "throttlingPercent": PERCENT}
CLASS = {
    "cpuQOS": st.fixed_dictionaries(
        {}, optional={"enable": SWITCH, "groupIdentity": st.integers(-1, 2), "coreExpeller": SWITCH}
    ),
    "memoryQOS": st.fixed_dictionaries({}, optional=MEMORY),
    "resctrlQOS": st.fixed_dictionaries({}, optional={"enable": SWITCH, "mbaPercent": PERCENT}),
}
FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "colocation-config": {
        "enable": SWITCH,
        "cpuReclaimThresholdPercent": st.integers(0, 2000),  # ours end at 1000
        "batchCPUThresholdPercent": PERCENT,
        "midReclaimMode": st.sampled_from(["", "static"]),
        "degradeTimeMinutes": st.integers(1, 60),
    },
    "resource-threshold-config": {
        "enable": SWITCH,
        "cpuSuppressMinPercent": PERCENT,
        "cpuSuppressPolicy": st.sampled_from(["cpuset", "cfsQuota"]),
        "memoryEvictThresholdPercent": st.integers(50, 100),
        "memoryEvictLowerPercent": st.integers(0, 99),
        "allocatableEvictPriorityThreshold": st.integers(0, 7999),
    },
    "resource-qos-config": {
        "policies": st.fixed_dictionaries({"cpuPolicy": st.sampled_from(["groupIdentity", "coreSched"])}),
        **{f"{name}Class": st.fixed_dictionaries({}, optional=CLASS) for name in ("lsr", "ls", "be", "system")},
    },
    "cpu-burst-config": {
        "policy": st.sampled_from(["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"]),
        "cfsQuotaBurstPeriodSeconds": st.integers(-1, 2),
        "cpuBurstPercent": st.integers(1, 10_000),
    },
    "system-config": {
        "watermarkScaleFactor": st.integers(1, 400),
        "minFreeKbytesFactor": st.integers(1, 20_000),
        "schedFeatures": st.dictionaries(st.sampled_from(["A", "B", "NO_A"]), SWITCH, max_size=2),
        "memcgReapBackGround": st.integers(0, 1),
    },
    "host-application-config": {
        "applications": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["nginx", "Log Shipper"]), "qos": st.sampled_from(["LS", "BE", ""])},
                optional={"cgroupPath": st.just({"base": "Kubepods", "relativePath": "x"})},
            ),
            max_size=2,
            unique_by=lambda app: app["name"],
        )
    },
    "cpu-normalization-config": {"enable": SWITCH, "defaultRatio": st.sampled_from([1.0, 1.5])},
}
LABELS = st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "b"]))
EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["pool", "zone"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(["pool", "zone"]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
)
SELECTOR = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSION, max_size=2)}
)
NODE_LABELS = st.builds(
    dict.__or__,
    LABELS,
    st.dictionaries(
        st.sampled_from(["node.koordinator.sh/cpu-reclaim-ratio", "node.koordinator.sh/cpu-normalization-enabled"]),
        st.sampled_from(["0.8", "true", "false"]),
    ),
)
ANNOTATIONS = st.dictionaries(
    st.just("node.koordinator.sh/colocation-strategy"),
    st.sampled_from(['{"enable": true}', '{"enable": false, "batchCPUThresholdPercent": 7}', "{"]),
)


@st.composite
def config_maps(draw: st.DrawFn) -> dict[str, str]:
    data = {}
    for key in draw(st.lists(st.sampled_from([*FIELDS]), unique=True)):
        overlay = st.fixed_dictionaries({}, optional=FIELDS[key])
        selectors = draw(st.lists(SELECTOR, max_size=3))
        entries = [{"name": f"e{n}", "nodeSelector": s, **draw(overlay)} for n, s in enumerate(selectors)]
        shape = SHAPES[key]
        cluster = draw(overlay)
        data[key] = json.dumps({**({shape.cluster: cluster} if shape.cluster else cluster), shape.entries: entries})
    return data


def spoken(key: str, held: Layered) -> Plain:
    """Without what nobody wrote of memory: our profiles have percentages of their own. Watermarks they have none."""

    def kept(path: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        below = {name: (f"{path}.{name}".lstrip("."), v) for name, v in value.items()}
        silent = {n for n, (p, _) in below.items() if ".memoryQOS." in p and held.layers[p].kind == "default"}
        heeded = {"enable", "wmarkRatio", "wmarkScalePermill", "wmarkMinAdj"}
        return {n: kept(p, v) for n, (p, v) in below.items() if n not in silent - heeded}

    whole: Plain = kept("", held.plain)
    return whole if key == "resource-qos-config" else held.plain


def theirs(data: dict[str, str], words: NodeWords) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key in TRANSLATORS:
        config = read_key(key, data[key], SHAPES[key])[0] if key in data else None
        if config is None:
            continue
        held = effective(key, config, words)
        made = translated(key, spoken(key, held))
        if isinstance(held.strategy, CpuNormalization):
            made = fitted(normalization(held.strategy, NodeSays()))
        said |= dict(native.fields(made.strategy))
    return said


@given(config_maps(), NODE_LABELS, ANNOTATIONS)
def test_a_node_gets_from_generated_strategies_what_its_layers_say(
    data: dict[str, str], labels: dict[str, str], annotations: dict[str, str]
) -> None:
    data = {key: text for key, text in data.items() if read_key(key, text, SHAPES[key])[0] is not None}
    if "colocation-config" not in data:
        annotations = {}
    words = NodeWords(labels, annotations)
    made = generated(data, [KnownNode("n1", words), KnownNode("n2", NodeWords({}, {}))])
    held = native.effective(made.all(), {**labels, HOSTNAME_LABEL: "n1"})
    assert dict(native.fields(held.strategy)) == theirs(data, words)
    assert not held.left_out


@given(config_maps(), NODE_LABELS, ANNOTATIONS)
def test_every_generated_object_is_valid_has_a_name_of_its_own_and_a_priority_below_those_of_users(
    data: dict[str, str], labels: dict[str, str], annotations: dict[str, str]
) -> None:
    objects = generated(data, [KnownNode("n1", NodeWords(labels, annotations))]).all()
    assert [finding for obj in objects for finding in validate(obj)] == []
    assert len({obj.metadata.name for obj in objects}) == len(objects)
    assert all(obj.spec.priority < 0 and native.fields(obj.spec) for obj in objects)
    assert all(Strategy() != obj.spec for obj in objects)
