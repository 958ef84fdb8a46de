"""Create, change and delete, the way people do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubectl.kubectl import Kubectl, policy

pytestmark = pytest.mark.lab


def test_a_namespace_needs_no_object(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", given=policy()) == "minimalreservationpolicy.j10ce.io/db created\n"
    assert kubectl.read("mrp", "db")["metadata"]["namespace"] == kubectl.namespace
    assert "AlreadyExists" in kubectl("create", "-f", "-", given=policy(), code=1)


def test_a_name_is_generated(kubectl: Kubectl) -> None:
    wish = policy()
    wish["metadata"] = {"generateName": "db-"}
    assert kubectl("create", "-f", "-", given=wish).startswith("minimalreservationpolicy.j10ce.io/db-")


def test_a_dry_run_changes_nothing(kubectl: Kubectl) -> None:
    assert "(server dry run)" in kubectl("create", "--dry-run=server", "-f", "-", given=policy())
    assert "NotFound" in kubectl("get", "mrp", "db", code=1)
    kubectl("create", "-f", "-", given=policy(units=1))
    kubectl("apply", "--dry-run=server", "-f", "-", given=policy(units=2))
    kubectl("delete", "mrp", "db", "--dry-run=server")
    assert kubectl.read("mrp", "db")["spec"]["units"] == 1


def test_unknown_fields_are_refused_and_reported(kubectl: Kubectl) -> None:
    wish = policy(colour="red")
    assert "colour" in kubectl("create", "-f", "-", given=wish, code=1)
    if kubectl.old:
        return  # it asks for no leniency of the server
    assert "created" in kubectl("create", "--validate=ignore", "-f", "-", given=wish)
    done = kubectl("replace", "--validate=warn", "-f", "-", given=wish | {"spec": wish["spec"] | {"units": 1}})
    assert "replaced" in done
    assert kubectl.read("mrp", "db")["spec"] == {"minimum": {"cpu": "1m"}, "units": 1}


def test_findings_come_with_their_fields(kubectl: Kubectl) -> None:
    output = kubectl("create", "-f", "-", given=policy(units=-1, minimum={"cpu": "0"}), code=1)
    assert "spec.units" in output
    assert "spec.minimum" in output


def test_patches(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy(units=1))
    kubectl("patch", "mrp", "db", "--type=merge", "-p", '{"spec": {"units": 2, "ttl": "1h"}}')
    test, remove = '{"op": "test", "path": "/spec/units", "value": 2}', '{"op": "remove", "path": "/spec/ttl"}'
    kubectl("patch", "mrp", "db", "--type=json", "-p", f"[{test}, {remove}]")
    assert kubectl.read("mrp", "db")["spec"] == {"minimum": {"cpu": "1m"}, "units": 2}
    assert "has no 'ttl'" in kubectl("patch", "mrp", "db", "--type=json", "-p", f"[{test}, {remove}]", code=1)
    refused = kubectl("patch", "mrp", "db", "-p", '{"spec": {"units": 3}}', code=1)
    assert "accepted media types include: application/json-patch+json, application/merge-patch+json" in refused


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy())
    kubectl("label", "mrp", "db", "app=shop", "tier=x")
    kubectl("label", "mrp", "db", "tier-", "app=web", "--overwrite")
    kubectl("annotate", "mrp", "db", "note=good")
    meta = kubectl.read("mrp", "db")["metadata"]
    assert (meta["labels"], meta["annotations"]["note"]) == ({"app": "web"}, "good")


def test_an_editor(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", given=policy(units=1))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/units: 1/units: 5/" "$1"\n')
    editor.chmod(0o755)
    assert "edited" in kubectl("edit", "mrp", "db", KUBE_EDITOR=str(editor))
    assert kubectl.read("mrp", "db")["spec"]["units"] == 5


def test_replacing_and_deleting(kubectl: Kubectl) -> None:
    for name in "abc":
        kubectl("create", "-f", "-", given=policy(name, labels={"app": name}))
    stale = kubectl.read("mrp", "a")
    kubectl("replace", "-f", "-", given=policy("a", units=2))
    assert "Conflict" in kubectl("replace", "-f", "-", given=stale, code=1)
    kubectl("replace", "--force", "-f", "-", given=policy("a", units=3))
    assert kubectl.read("mrp", "a")["spec"]["units"] == 3
    kubectl("delete", "mrp", "-l", "app=b")
    kubectl("delete", "-f", "-", given=policy("absent"), code=1)
    kubectl("delete", "mrp", "absent", "--ignore-not-found")
    kubectl("delete", "mrp", "--all")
    assert kubectl.read("mrp")["items"] == []
