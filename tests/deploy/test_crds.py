"""The generated CRDs are fresh and structural, and refuse nothing that the model and its validation take."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.manager.documents.silence import Word
from j10ce.manager.keepers.expiry import hold_status
from j10ce.manager.keepers.nodes import readiness
from j10ce.manager.policies.admission import expired, limited, refused, unheld
from j10ce.manager.policies.reports import RolloutStanding
from j10ce.manager.policies.status import Basis, judged
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import (
    Condition,
    Hold,
    MinimalReservationPolicy,
    NodeQoS,
    QoSProfile,
)
from j10ce.model.resource import NOTHING
from j10ce.model.schema import decode, encode
from j10ce.policy.document.rollout import NodesSeen
from j10ce.policy.validation.validate import validate
from j10ce.scheduler.ledger.pledge import PledgeRefusal
from j10ce.testing.build import hold, reservation
from tests.deploy.dockerfiles import CLONE
from tests.model.generate import of
from tests.policy.validation.test_validate import GOOD
from tools import generate_crds
from tools.crd_rules import FIELDS, RULES
from tools.crd_schema import schema_of

NAMES = ("QoSProfile", "MinimalReservationPolicy", "NodeStrategy", "NodeQoS", "Hold", "PolicyRevision")
EACH = pytest.mark.parametrize("name", NAMES)


def definition(name: str) -> Any:
    return yaml.safe_load((CLONE / f"config/crd/bases/j10ce.io_{KINDS[name].plural}.yaml").read_text())


def schema(name: str) -> Any:
    (version,) = definition(name)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


@EACH
def test_the_files_are_fresh(name: str) -> None:
    kind, made = KINDS[name], schema_of(KINDS[name])
    assert generate_crds.definition(kind, generate_crds.without_rules(made)) == definition(name), "make generate"
    ruled = {d["spec"]["names"]["kind"]: d for d in yaml.safe_load_all(generate_crds.RULED.read_text())}
    assert generate_crds.selected(kind, generate_crds.definition(kind, made)) == ruled[name], "make generate"


def test_files_for_old_servers_have_no_rules() -> None:
    plain = "".join(file.read_text() for file in generate_crds.BASES.glob("*.yaml"))
    assert "x-kubernetes-validations" not in plain
    assert "selectableFields" not in plain
    assert "x-kubernetes-validations" in generate_crds.RULED.read_text()


@EACH
def test_every_node_has_a_type_and_says_what_it_means(name: str) -> None:
    for path, node in nodes(schema(name)):
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert not node.keys() & {"$ref", "oneOf", "anyOf", "const", "title", "examples"}, path
        assert node.get("description") or path.endswith(("metadata", "[]", "{}")), path
        if node.get("type") == "array":
            assert "x-kubernetes-list-type" in node, path
        if "default" in node:
            assert accepts(node, node["default"]), path


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in node:
            yield from nodes(node[key], path + step)


def test_every_rule_is_about_something() -> None:
    structs = {struct for struct, _ in FIELDS} | set(RULES)
    schemas = "".join(json.dumps(schema_of(KINDS[name])) for name in NAMES)
    assert all(rule in schemas for rules in RULES.values() for rule in (json.dumps(r)[1:-1] for r, _ in rules))
    assert structs <= {cls.__name__ for cls in every_struct()}
    for struct in every_struct():
        wanted = {field for owner, field in FIELDS if owner == struct.__name__}
        assert wanted <= set(struct.__struct_encode_fields__), struct.__name__


def every_struct() -> set[Any]:
    from j10ce.manager.openapi.shape import messages

    return set(messages())


def in_force(spec: Any) -> Any:
    """As an API server understands it: a quantity is an integer or a text."""
    if isinstance(spec, dict):
        made = {key: in_force(value) for key, value in spec.items() if not key.startswith("x-kubernetes-")}
        return made | ({"type": ["integer", "string"]} if spec.get("x-kubernetes-int-or-string") is True else {})
    return [in_force(value) for value in spec] if isinstance(spec, list) else spec


def accepts(node: Any, value: object) -> bool:
    return bool(jsonschema_rs.is_valid(in_force(node), value))


VALIDATORS = {name: jsonschema_rs.validator_for(in_force(schema(name)), validate_formats=True) for name in NAMES}
CANDIDATES: tuple[object, ...] = (
    *(-1, 0, 1, 2, 50, 100, 101, 1000, 1001, 10_000, 10_001, 262_144, 262_145, 1_000_000, 1_000_001, 2**53, 2**53 + 1),
    *("", " ", "0", "1", ".5", "1.5", "5%", "100%", "101%", "100.1%", "1Gi", "1Xi", "100Mbit", "-1", "1e3", "%"),
    *(
        "0s",
        "1s",
        "1h30m",
        "30",
        "2030-01-01T00:00:00Z",
        "2030-01-01",
        "node",
        "group/",
        "group/..",
        "group/a/.b",
        "a/b",
    ),
    *(
        "n1.example",
        "UPPER",
        "normal",
        "besteffort",
        "None",
        "cpu.max",
        "x" * 254,
        True,
        False,
        None,
        [],
        {},
        ["cpu.max"],
        ["cpu.turbo"],
        ["CPU"],
        [""],
    ),
    *({"a": "b"}, {"a": ""}, {"a": "-"}, {"a": 1}, {"matchLabels": {"a": "b"}}, {"nobody": "knows"}),
)
LOOSE = {  # fields that only make sense with others, or whose amounts have no pattern: rules and the webhook judge them
    "QoSProfile": {".spec.cache.llcStartPercent", ".spec.cache.llcEndPercent"},
    "MinimalReservationPolicy": {".spec.lending.within", ".spec.minimum.cpu"},
    # no schema speaks of the keys of a mapping
    "NodeStrategy": {
        ".spec.suppress.bufferCpus",
        ".spec.overcommit.difference",
        ".spec.overcommit.cpu.reserved",
        ".spec.overcommit.memory.reserved",
        ".spec.profiles",
        ".spec.network.links",
        ".spec.io.disks",
    },
    "Hold": {
        ".spec.value",
        ".spec.target",
        ".spec.knobs",
    },  # no rule sees a namespace; knobs are more with each release
}


@EACH
def test_schema_and_validation_agree_on_every_field(name: str) -> None:
    """Fractions aside: an amount is an integer or a text to an API server, and a text may be a fraction."""
    leaves = [path for path, node in nodes(schema(name)) if of_the_wish(path) and "properties" not in node]
    verdicts = [(path, value, *verdict(name, path, value)) for path in leaves for value in CANDIDATES]
    assert len(verdicts) > 100
    assert not [(path, value) for path, value, right, fits in verdicts if right and not fits]
    assert {path for path, _, right, fits in verdicts if fits and not right} == LOOSE.get(name, set())


def of_the_wish(path: str) -> bool:
    return path.startswith((".spec.", ".revision", ".data")) and "[]" not in path and "{}" not in path


def verdict(name: str, path: str, value: object) -> tuple[bool, bool]:
    raw = placed(GOOD[name], path, value)
    return is_right(raw), VALIDATORS[name].is_valid(raw)


def placed(good: Any, path: str, value: object) -> Any:
    made = json.loads(json.dumps(good))
    made["metadata"].pop("creationTimestamp", None)
    here, (*steps, last) = made, path.strip(".").split(".")
    for step in steps:
        here = here.setdefault(step, {})
    here[last] = value
    return made


def is_right(raw: Any) -> bool:
    try:
        return not validate(decode(raw))
    except Invalid:
        return False


@pytest.mark.parametrize("struct", [QoSProfile, MinimalReservationPolicy, NodeQoS, Hold], ids=lambda s: s.__name__)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_status_that_we_write_is_taken(struct: Any, data: st.DataObject) -> None:
    received = json.loads(encode(data.draw(of(struct))))
    received["status"].pop("conditions", None)  # which are concluded, see below
    raw = {key: value for key, value in GOOD[struct.__name__].items() if key != "status"} | {
        "status": received["status"]
    }
    assert [str(error) for error in VALIDATORS[struct.__name__].iter_errors(raw)] == []


def test_conditions_are_what_kubernetes_calls_conditions() -> None:
    for name in ("QoSProfile", "MinimalReservationPolicy", "NodeQoS", "Hold"):
        conditions = schema(name)["properties"]["status"]["properties"]["conditions"]
        assert set(conditions["items"]["required"]) == {"type", "status", "reason", "message", "lastTransitionTime"}
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def concluded() -> list[tuple[str, Condition]]:
    """Conditions as managers write them."""
    policy, wall = reservation("db", cpu="1", units=1), 2e9
    words = [Word(0.0, False, False), Word(100.0, False, False), Word(math.inf, True, True)]
    basis = Basis(RolloutStanding(1, 1, 0, {"n1": "no room"}, NodesSeen(1, 0, {"n1": "no room"})))
    refusal = PledgeRefusal("NoRoom", NOTHING, 1, 0, 1)
    decisions = (
        expired(policy),
        unheld(policy),
        refused(policy, refusal),
        limited(policy, unheld(policy), "cpu 3 of 3"),
    )
    statuses = [judged(policy, basis, decision, wall) for decision in decisions]
    return [
        *(("NodeQoS", readiness(word, wall, nonsense)) for word in words for nonsense in ("", "cpu: negative")),
        *(("Hold", c) for c in hold_status(hold("node", "cpu.max", expires=wall - 1), wall).conditions),
        *(("MinimalReservationPolicy", c) for status in statuses for c in status.conditions),
    ]


def test_what_managers_conclude_is_taken() -> None:
    statuses = concluded()
    assert {kind for kind, _ in statuses} == {"NodeQoS", "Hold", "MinimalReservationPolicy"}
    for kind, condition in statuses:
        raw = {**GOOD[kind], "status": {"conditions": [json.loads(encode(condition))]}}
        assert [str(error) for error in VALIDATORS[kind].iter_errors(raw)] == [], condition


def test_units_can_be_scaled() -> None:
    (version,) = definition("MinimalReservationPolicy")["spec"]["versions"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.units"


def test_no_short_name_belongs_to_somebody_else() -> None:
    theirs = {"pr", "po", "no", "ns", "svc", "ds", "deploy", "ev", "ep", "cm", "sa", "rs", "rc", "pv", "pvc", "quota"}
    for kind in KINDS.values():
        assert not theirs & set(kind.short), kind.name
