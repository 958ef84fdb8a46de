"""Objects and text: strict both ways, every mistake at once, and the JSON Schema says the same as the decoder."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import API_VERSION, Object, Tier
from j10ce.model.schema import convert, decode, encode, json_schema, kind_of, parse, plain
from j10ce.testing.build import profile, reservation
from tests.model.generate import objects

slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@slow_to_draw
@given(objects())
def test_what_is_encoded_decodes_to_the_same(obj: Object) -> None:
    assert decode(msgspec.json.decode(encode(obj))) == obj
    assert parse(encode(obj), type(obj)) == obj
    assert decode(plain(obj)) == obj


@slow_to_draw
@given(objects())
def test_the_json_schema_accepts_what_the_decoder_accepts(obj: Object) -> None:
    schema_of(obj.kind).validate(msgspec.json.decode(encode(obj)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "tier"), "platinum"),
        (("spec", "cpu", "weight"), "many"),
        (("spec", "cpu", "burst"), "1gi"),
        (("spec", "cpu", "burst"), -1),
        (("spec", "io", "latency"), "soon"),
        (("spec", "io", "latency"), 5),
        (("spec", "surprise"), 1),
        (("metadata", "labels"), {"a": 1}),
        (("kind",), "QosProfile"),
    ],
    ids=str,
)
def test_what_the_decoder_refuses_the_schema_refuses(path: tuple[str, ...], value: object) -> None:
    raw = edited(plain(profile("p")), path, value)
    with pytest.raises(Invalid):
        decode(raw)
    assert not schema_of("QoSProfile").is_valid(raw)


def edited(raw: Any, path: tuple[str, ...], value: object) -> Any:
    here = raw
    for step in path[:-1]:
        here = here.setdefault(step, {})
    here[path[-1]] = value
    return raw


@cache
def schema_of(kind: str) -> jsonschema_rs.Validator:
    (reference,), components = json_schema([KINDS[kind].struct])
    return jsonschema_rs.validator_for({**reference, "components": {"schemas": components}})


def test_every_mistake_is_reported_at_once_with_path_value_and_problem() -> None:
    raw = plain(reservation("db", cpu="1"))
    raw["spec"]["minimum"] = {"cpu": "1gi", "memory": -1, "gpu": 2}
    raw["spec"]["selector"] = {
        "matchLabels": {"a": 1, "b": "fine", "c": None},
        "matchExpressions": [
            {"key": "x", "operator": "Near"},
            {"key": "y", "operator": "Exists"},
            {"key": 3},
            4,
            {"key": "z"},
        ],
    }
    raw["spec"]["ttl"] = "soon"
    raw["metadata"]["name"] = ["db"]
    with pytest.raises(Invalid) as caught:
        decode(raw)
    values = {f.path: f.value for f in caught.value.findings}
    assert values == {
        "spec.minimum.cpu": "1gi",
        "spec.minimum.memory": -1,
        "spec.minimum.gpu": 2,
        "spec.selector.matchLabels.a": 1,
        "spec.selector.matchLabels.c": None,
        "spec.selector.matchExpressions[0].operator": "Near",
        "spec.selector.matchExpressions[2].key": 3,
        "spec.selector.matchExpressions[3]": 4,
        "spec.selector.matchExpressions[4].operator": None,
        "spec.ttl": "soon",
        "metadata.name": None,
    }
    assert all(f.problem for f in caught.value.findings)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (None, ""),
        ([], ""),
        ({}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod"}, "apiVersion"),
        ({"apiVersion": API_VERSION, "kind": ["QoSProfile"]}, "kind"),
        ({"apiVersion": API_VERSION, "kind": "Pod"}, "kind"),
        ({"apiVersion": API_VERSION, "kind": "QoSProfile"}, "metadata"),
        ({"apiVersion": API_VERSION, "kind": "QoSProfile", "metadata": {"name": "x"}, "spec": {}}, "spec.tier"),
        ({"apiVersion": API_VERSION, "kind": "NodeQoS", "metadata": {"name": "x"}, "": 1}, ""),
    ],
    ids=str,
)
def test_what_is_no_object_of_ours_is_a_finding(raw: object, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        decode(raw)
    assert caught.value.findings[0].path == path


@given(st.sampled_from(sorted(KINDS)), json_values, json_values)
def test_no_plain_data_breaks_the_decoder(kind: str, spec: Any, meta: Any) -> None:
    with suppress(Invalid):
        decode({"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})


@slow_to_draw
@given(objects(), st.data())
def test_damage_anywhere_is_a_finding_or_still_an_object(obj: Object, data: st.DataObject) -> None:
    raw = plain(obj)
    paths = list(walk(raw))
    path = data.draw(st.sampled_from(paths))
    damaged = edited(raw, path, data.draw(json_values))
    with suppress(Invalid):
        assert plain(decode(damaged))


def walk(raw: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(raw, dict):
        return []
    return [p for key, value in raw.items() for p in [(*path, key), *walk(value, (*path, key))]]


@given(st.binary() | st.text())
def test_no_text_breaks_the_parser(text: bytes | str) -> None:
    with suppress(Invalid):
        parse(text, KINDS["Hold"].struct)


def test_tiers_are_ranked_from_system_to_besteffort() -> None:
    assert [t.rank for t in Tier] == sorted((t.rank for t in Tier), reverse=True)
    assert Tier.BESTEFFORT.rank > 0


def test_a_kind_finds_its_struct_and_every_listing_column_exists() -> None:
    for kind in KINDS.values():
        assert kind_of({"apiVersion": API_VERSION, "kind": kind.name}) is kind
        properties = schema_properties(kind.struct)
        for column in kind.columns:
            assert column.path.split(".")[0] in properties


def schema_properties(struct: type[msgspec.Struct]) -> set[str]:
    return {f.encode_name for f in msgspec.structs.fields(struct)}


def test_a_field_that_says_nothing_is_not_written() -> None:
    assert plain(profile("p").spec) == {"tier": "standard"}
    assert convert({"tier": "standard"}, type(profile("p").spec)) == profile("p").spec


THREADS = """
import sys, threading
import msgspec
from j10ce.model.catalogue import KINDS
from j10ce.model.schema import parse, prime
sys.setswitchinterval(1e-6)
prime()
start = threading.Barrier(4)
def work():
    for kind in KINDS.values():
        start.wait()
        try:
            parse(b'{"metadata":{"name":"x"},"spec":{}}', kind.struct)
        except Exception as e:
            assert type(e).__name__ == "Invalid", e
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_kinds_may_be_read_for_the_first_time_by_several_threads_at_once() -> None:
    """Without `prime` about every fourth of these interpreters dies."""
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["", ".", "]"])
def test_a_field_without_a_name_is_an_unknown_field(name: str) -> None:
    raw = {"apiVersion": API_VERSION, "kind": "QoSProfile", "metadata": {"name": "x"}, "spec": {"tier": "standard"}}
    with pytest.raises(Invalid, match="unknown field"):
        decode({**raw, name: 1})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {"tier": "gold"},
            "spec.tier = 'gold': not one of the known words; use one of system, exclusive, reserved, sensitive, "
            "standard, besteffort",
        ),
        (
            {"tier": "standard", "cpu": {"pinning": "shard"}},
            "spec.cpu.pinning = 'shard': not one of the known words; did you mean shared? use one of",
        ),
        ({"tier": "standard", "memry": {}}, "spec.memry: unknown field; did you mean memory?"),
        ({"tier": "standard", "": {}}, "spec.: unknown field; remove it or correct its spelling"),
        ({"tier": "standard", "xyzzy": {}}, "spec.xyzzy: unknown field; remove it or correct its spelling"),
    ],
)
def test_a_word_that_is_not_known_is_answered_with_those_that_are(spec: dict[str, object], says: str) -> None:
    raw = {"apiVersion": API_VERSION, "kind": "QoSProfile", "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(Invalid) as refused:
        decode(raw)
    assert says in str(refused.value)


@pytest.mark.parametrize("key", ["", ".", "[]", "..."])
def test_a_field_whose_name_is_no_name_is_refused_like_any_other(key: str) -> None:
    """It was an internal error, with a traceback in the log, for whoever sent two quotes."""
    raw = {"apiVersion": API_VERSION, "kind": "QoSProfile", "metadata": {"name": "x"}, "spec": {"tier": "standard"}}
    with pytest.raises(Invalid, match="unknown field"):
        decode({**raw, key: None})
