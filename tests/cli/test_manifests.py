import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.cli.manifests import load, load_checked
from j10ce.errors import Invalid

GOOD = """
apiVersion: j10ce.io/v1alpha1
kind: MinimalReservationPolicy
metadata: {name: web, namespace: default}
spec: {minimum: {cpu: 500m}}
"""


def written(tmp_path: Path, text: str | bytes, name: str = "a.yaml") -> str:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def test_a_directory_yields_its_files_in_order(tmp_path: Path) -> None:
    written(tmp_path, GOOD.replace("web", "b"), "2.yaml")
    written(tmp_path, GOOD.replace("web", "a") + "---" + GOOD.replace("web", "c"), "1.yml")
    written(tmp_path, "not read", "notes.txt")
    assert [o["metadata"]["name"] for o in load([str(tmp_path)])] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: [", "not YAML", id="broken YAML"),
        pytest.param("- 1", "not an object", id="a list"),
        pytest.param("hello", "a.yaml#1 = 'hello': not an object", id="a text"),
        pytest.param("kind: Pod", "unknown kind", id="another kind"),
        pytest.param("kind: [a]", "unknown kind", id="a kind that is a list"),
        pytest.param("kind: {a: b}", "unknown kind", id="a kind that is a mapping"),
        pytest.param(GOOD.replace("500m", "500x"), "unknown suffix", id="a bad quantity"),
        pytest.param(GOOD.replace("minimum", "minimun"), "minimun", id="a misspelt field"),
        pytest.param(GOOD.replace("name: web", "name: ../../etc"), "metadata.name", id="a name that escapes"),
        pytest.param("", "no objects", id="nothing"),
        pytest.param(b"\xff\xfe\x00", "", id="not text"),
        pytest.param("a: &a [*a]", "", id="an object that contains itself"),
    ],
)
def test_bad_input_is_reported_with_its_file(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(Invalid) as e:
        load([written(tmp_path, text)])
    assert "a.yaml" in str(e.value)
    assert says in str(e.value)


def test_all_findings_of_all_files_come_at_once(tmp_path: Path) -> None:
    written(tmp_path, GOOD.replace("500m", "x"), "1.yaml")
    written(tmp_path, GOOD.replace("spec", "spek"), "2.yaml")
    with pytest.raises(Invalid) as e:
        load([str(tmp_path)])
    assert {f.path.split()[0].rpartition("/")[2] for f in e.value.findings} == {"1.yaml#1", "2.yaml#1"}


def test_an_object_that_stands_twice_is_refused(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "1.yaml")
    written(tmp_path, GOOD.replace("500m", "600m").replace(", namespace: default", ""), "2.yaml")
    with pytest.raises(Invalid) as e:
        load([str(tmp_path)])
    (finding,) = e.value.findings
    assert str(finding).startswith(f"{tmp_path}/2.yaml#1: MinimalReservationPolicy default/web stands in {tmp_path}/1.")


def test_the_same_name_in_two_namespaces_is_two_objects(tmp_path: Path) -> None:
    text = GOOD + "---" + GOOD.replace("namespace: default", "namespace: shop")
    assert len(load([written(tmp_path, text)])) == 2


def test_pods_stand_once_too_and_those_without_a_name_are_many(tmp_path: Path) -> None:
    pod, nameless = "kind: Pod\nmetadata: {name: a}\n---\n", "kind: Pod\nmetadata: {generateName: a}\n---\n"
    assert len(load_checked([written(tmp_path, pod + nameless + nameless)], frozenset({"Pod"}))) == 3
    with pytest.raises(Invalid, match=r"#2: Pod default/a stands in .*#1 already"):
        load_checked([written(tmp_path, pod + pod)], frozenset({"Pod"}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD + "spec: {minimum: {cpu: 1}}\n", id="at the top"),
        pytest.param(GOOD.replace("{cpu: 500m}", "{cpu: 500m,\n   'cpu': 1}"), id="deep inside"),
        pytest.param('{"kind": "Pod", "kind":\n"Node"}', id="in JSON"),
        pytest.param("a: [{b: 1, b: 2}]\n", id="in a list"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid) as e:
        load([written(tmp_path, text)])
    repeated = [str(f) for f in e.value.findings if f.problem == "duplicate field"]
    assert len(repeated) == 1
    assert re.search(r"a\.yaml:\d+ (spec|cpu|kind|b): duplicate field; write it once$", repeated[0])


def test_a_deeply_nested_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        load([written(tmp_path, "[" * 5000 + "]" * 5000)])


@given(st.text() | st.binary())
def test_no_text_makes_it_crash(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(data)
    with contextlib.suppress(Invalid):
        assert isinstance(load([str(file)]), list)


def test_mistakes_of_shape_and_of_value_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "profile.yaml"
    file.write_text(
        "apiVersion: j10ce.io/v1alpha1\nkind: QoSProfile\nmetadata: {name: Gold}\n"
        "spec: {tier: standard, memry: {}, cpu: {weight: 0, pinning: shard}}\n"
    )
    with pytest.raises(Invalid) as refused:
        load([str(file)])
    paths = [f.path.rpartition(" ")[2] for f in refused.value.findings]
    assert sorted(paths) == ["metadata.name", "spec.cpu.pinning", "spec.cpu.weight", "spec.memry"]


@pytest.mark.parametrize("tier", ["tier: gold, ", ""], ids=["unknown", "missing"])
def test_a_profile_without_a_tier_is_told_what_else_is_wrong_in_it(tmp_path: Path, tier: str) -> None:
    head = "apiVersion: j10ce.io/v1alpha1\nkind: QoSProfile\nmetadata: {name: gold}\n"
    file = written(tmp_path, f"{head}spec: {{{tier}prority: 5, cpu: {{weight: 99999999}}}}\n")
    with pytest.raises(Invalid) as refused:
        load([file])
    paths = [f.path.rpartition(" ")[2] for f in refused.value.findings]
    assert paths == ["spec.tier", "spec.prority", "spec.cpu.weight"]


def test_a_mistyped_kind_is_answered_with_the_one_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="did you mean QoSProfile"):
        load([written(tmp_path, "apiVersion: j10ce.io/v1alpha1\nkind: QosProfil\n")])


def test_what_was_cut_out_for_its_shape_is_not_called_missing(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "apiVersion: j10ce.io/v1alpha1\nkind: MinimalReservationPolicy\nmetadata: {name: p}\n"
        "spec: {minimum: {cpu: lots}, selector: {}}\n"
    )
    with pytest.raises(Invalid) as refused:
        load([str(file)])
    assert [f.path.rpartition(" ")[2] for f in refused.value.findings] == ["spec.minimum.cpu"]
