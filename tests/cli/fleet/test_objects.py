"""apply, get, describe, delete, diff against a real API: formats, all or nothing, watches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.session import Session, eventually

pytestmark = pytest.mark.host
POLICY = """
apiVersion: j10ce.io/v1alpha1
kind: MinimalReservationPolicy
metadata: {{name: {name}}}
spec: {{minimum: {{cpu: {cpu}}}, selector: {{matchLabels: {{app: {name}}}}}}}
---
"""


def policies(folder: Path, **cpu: str) -> str:
    file = folder / "policies.yaml"
    file.write_text("".join(POLICY.format(name=name, cpu=amount) for name, amount in cpu.items()))
    return str(file)


def test_apply_says_what_became_of_each_object(stack: Session, tmp_path: Path) -> None:
    file = policies(tmp_path, one="100m", two="0.2")
    names = [f"minimalreservationpolicy/{n}" for n in ("one", "two")]
    assert stack.says("apply", "-f", file, "--dry-run").splitlines() == [f"{n} created (dry run)" for n in names]
    assert stack.says("diff", "-f", file, code=1).count("+  name: ") == 2
    assert stack.says("apply", "-f", file).splitlines() == [f"{n} created" for n in names]
    assert stack.says("apply", "-f", file).splitlines() == [f"{n} unchanged" for n in names]
    assert stack.says("diff", "-f", file) == ""
    policies(tmp_path, one="100m", two="300m")
    delta = stack.says("diff", "-f", file, code=1)
    assert "-    cpu: 200m\n+    cpu: 300m" in delta
    assert "/one" not in delta
    assert stack.says("apply", "-f", file).splitlines() == [f"{names[0]} unchanged", f"{names[1]} configured"]
    assert stack.says("delete", "-f", file).splitlines() == [f"{n} deleted" for n in names]
    assert "No minimalreservationpolicies found in namespace default." in stack.says("get", "mrp")


def test_one_bad_object_and_nothing_is_applied(stack: Session, tmp_path: Path) -> None:
    output = stack.fails(3, "apply", "-f", policies(tmp_path, good="100m", bad="100x", worse="-1"))
    assert "policies.yaml#2 spec.minimum.cpu = '100x': unknown suffix" in output
    assert "policies.yaml#3 spec.minimum.cpu" in output
    stack.fails(6, "get", "mrp", "good")


@pytest.mark.parametrize("words", [["apply"], ["apply", "--dry-run"], ["diff"], ["plan"], ["delete"]], ids=" ".join)
def test_an_object_that_stands_twice_is_refused_before_anything_is_sent(
    stack: Session, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(POLICY.format(name="twice", cpu="100m") + POLICY.format(name="twice", cpu="200m, cpu: 300m"))
    output = stack.fails(3, *words, "-f", str(file))
    assert "twice.yaml#2: MinimalReservationPolicy default/twice stands in" in output
    assert "twice.yaml:11 cpu: duplicate field" in output
    stack.fails(6, "get", "mrp", "twice")


def test_workloads_are_not_applied_or_deleted(stack: Session) -> None:
    output = stack.fails(3, "apply", "-f", "examples/what-if/workloads.yaml")
    assert "workloads come with `j10ce-qos run`" in output
    assert "`j10ce-qos forget web`" in stack.fails(3, "delete", "workload", "web")


PROFILE = """
apiVersion: j10ce.io/v1alpha1
kind: QoSProfile
metadata: {name: lost}
spec: {tier: standard}
"""


def test_a_profile_in_use_is_deleted_by_force_alone_and_its_workloads_are_named(stack: Session, tmp_path: Path) -> None:
    file = tmp_path / "profile.yaml"
    file.write_text(PROFILE)
    stack("apply", "-f", str(file))
    assert eventually(lambda: stack("run", "--profile", "lost", "--", "true", code=None).returncode == 0)
    stack.running("loser", "--profile", "lost")
    assert "lost is in use by default/loser, and would not apply" in stack.fails(7, "delete", "qosprofile", "lost")
    assert stack.says("delete", "--force", "qosprofile", "lost") == "qosprofile/lost deleted\n"


def test_a_pod_is_asked_for_where_there_is_no_kubernetes(stack: Session) -> None:
    assert "is no Kubernetes and has no pods" in stack.fails(6, "explain", "pod/web")


@pytest.mark.parametrize("kind", ["qosprofiles", "mrp", "nodeqoses", "holds", "workloads", "policyrevisions"])
def test_every_listing_has_every_format(stack: Session, kind: str) -> None:
    assert json.loads(stack.says("get", kind, "-A", "-o", "json"))["kind"].endswith("List")
    assert yaml.safe_load(stack.says("get", kind, "-A", "-o", "yaml"))["apiVersion"] == "j10ce.io/v1alpha1"
    for style in ("table", "wide"):
        assert stack.says("get", kind, "-A", "-o", style).strip()


@pytest.mark.parametrize("command", ["top", "status", "doctor", "plugins"])
def test_every_other_listing_has_every_format(stack: Session, command: str) -> None:
    assert json.loads(stack.says(command, "-o", "json"))
    assert yaml.safe_load(stack.says(command, "-o", "yaml"))
    assert stack.says(command, "-o", "table")
    assert stack.says(command, "-o", "wide")


def test_a_listing_shows_defaults_not_gaps(stack: Session, tmp_path: Path) -> None:
    head, row = (line.split() for line in stack.says("get", "qosprofiles", "ls", "-o", "wide").splitlines())
    assert head == ["NAME", "TIER", "PRIORITY", "READY", "REASON", "PINNING", "IDLE", "NODES", "FAILING", "AGE"]
    shown = dict(zip(head, row, strict=True))
    assert [shown[name] for name in ("NAME", "TIER", "PRIORITY", "PINNING", "IDLE", "FAILING")] == [
        "ls", "sensitive", "0", "shared", "no", "0",
    ]  # fmt: skip
    stack("apply", "-f", policies(tmp_path, shown="100m"))
    assert {"Pending", "Active"} & set(stack.says("get", "mrp", "shown").splitlines()[1].split())


def test_workloads_of_all_namespaces_are_listed_unless_one_is_asked_for(stack: Session) -> None:
    stack.running("near", "--label", "app=near")
    stack.running("far", "-n", "elsewhere")
    listed = {w["metadata"]["name"] for w in stack.json("get", "workloads")["items"]}
    assert {"near", "far"} <= listed
    assert [w["metadata"]["name"] for w in stack.json("get", "wl", "-n", "elsewhere")["items"]] == ["far"]
    assert [w["metadata"]["name"] for w in stack.json("get", "wl", "-l", "app=near")["items"]] == ["near"]
    assert stack.json("get", "wl", "far", "-n", "elsewhere")["metadata"]["namespace"] == "elsewhere"
    assert "No workloads found in namespace nowhere." in stack.says("get", "wl", "-n", "nowhere")


def test_describe_says_what_an_object_does(stack: Session, tmp_path: Path) -> None:
    output = stack.says("describe", "qosprofile", "be")
    assert output.startswith("Name:        be\n")
    assert "cpu.idle" in output.partition("Effect:")[2]
    stack.running("seen", "--min-cpu", "100m")
    output = stack.says("describe", "workload", "seen")
    assert "cgroup: " in output
    assert eventually(lambda: "PROMISED" in stack.says("describe", "workload", "seen"))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["get", "pods"], 3, "unknown kind; did you mean workloads? use one of qosprofiles"),
        (["get", "qosprofiles", "nope"], 6, "QoSProfile nope does not exist"),
        (["get", "workloads", "nope"], 6, "there is no workload default/nope"),
        (["get", "holds", "nope"], 6, "there is no hold default/nope"),
        (["get", "qosprofiles", "../../x"], 6, ""),
        (["get", "qosprofiles", "-l", "=="], 3, "not understood at '=='; write it as a=b"),
        (["get", "workloads", "-l", "=="], 3, "not understood at '=='; write it as a=b"),
        (["describe", "mrp", "nope"], 6, "does not exist"),
        (["delete", "mrp", "nope"], 6, "does not exist"),
        (["delete", "mrp"], 2, "name a kind and at least one object"),
        (["apply", "-f", "/nonexistent"], 6, "/nonexistent: No such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_not_there_is_reported(stack: Session, words: list[str], code: int, says: str) -> None:
    assert says in stack.fails(code, *words)


def test_a_watch_prints_changes_as_they_come(stack: Session, tmp_path: Path) -> None:
    watch = stack.start("get", "mrp", "-w")
    assert eventually(lambda: stack.output(watch).startswith("EVENT"))
    stack("apply", "-f", policies(tmp_path, watched="100m"))
    assert eventually(lambda: "added      default     watched" in stack.output(watch)), stack.output(watch)
    stack("delete", "mrp", "watched")
    assert eventually(lambda: "deleted    default     watched" in stack.output(watch)), stack.output(watch)
    watch.send_signal(2)
    assert watch.wait(30) == 130


def test_workloads_can_be_watched_too(stack: Session) -> None:
    stack.running("staying")
    watch = stack.start("get", "workloads", "-w", "-o", "json")
    assert eventually(lambda: ("listed", "staying") in events(stack.output(watch)))
    run = stack.running("passing")
    assert eventually(lambda: ("added", "passing") in events(stack.output(watch)))
    run.terminate()
    assert eventually(lambda: ("deleted", "passing") in events(stack.output(watch)))


def events(output: str) -> list[tuple[str, str]]:
    whole = output.rpartition("\n")[0]
    body = [json.loads(line) for line in whole.splitlines()]
    return [(event["event"], event["object"]["metadata"]["name"]) for event in body]
