"""Discovery, listings in every form, and waiting for what happens."""

from __future__ import annotations

import pytest

from tests.fleet.managers import eventually
from tests.kubectl.kubectl import Kubectl, policy
from tests.manager.process import Running

pytestmark = pytest.mark.lab


def test_it_finds_out_what_there_is(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "--no-headers")
    assert [line.split()[-1] for line in listed.splitlines() if line.startswith("minimal")] == [
        "MinimalReservationPolicy"
    ]
    assert kubectl("api-versions") == "j10ce.io/v1alpha1\n"
    assert "v0." in kubectl("version")
    assert kubectl("get", "--raw", "/healthz") == "ok\n"
    assert "resource type" in kubectl("get", "namespaces", code=1)


def test_a_listing_has_the_columns_of_its_kind(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy("db", units=2))
    head, row = (line.split() for line in kubectl("get", "mrp").splitlines())
    assert head[:2] == ["NAME", "PHASE"]
    assert head[-1] == "AGE"
    fields = dict(zip(head, row, strict=True))
    assert (fields["NAME"], fields["CPU"], fields["MEMORY"], fields["UNITS"]) == ("db", "1m", "<none>", "2")
    assert fields["AGE"].endswith("s")
    assert "TTL" in kubectl("get", "mrp", "-o", "wide")
    assert kubectl("get", "mrp", "-A").split()[0] == "NAMESPACE"
    assert "minimalreservationpolicy.j10ce.io/db" in kubectl("get", "j10ce")


def test_every_form_of_output_works(kubectl: Kubectl) -> None:
    for n, name in enumerate("cab"):
        kubectl("create", "-f", "-", given=policy(name, units=n, labels={"rank": str(n)}))
    assert kubectl("get", "mrp", "-o", "name").split() == [f"minimalreservationpolicy.j10ce.io/{n}" for n in "abc"]
    assert kubectl("get", "mrp", "-o", "jsonpath={.items[*].spec.units}") == "1 2"
    assert kubectl("get", "mrp", "a", "-o", "custom-columns=X:.metadata.name,Y:.spec.units").split() == [
        "X",
        "Y",
        "a",
        "1",
    ]
    by_units = kubectl("get", "mrp", "--sort-by=.spec.minimum.cpu", "--no-headers")
    assert [line.split()[0] for line in by_units.splitlines()] == ["a", "b", "c"]
    assert "units: 1" in kubectl("get", "mrp", "a", "-o", "yaml")
    assert "Units:" in kubectl("describe", "mrp", "a")
    if not kubectl.old:
        assert "managedFields" not in kubectl("get", "mrp", "a", "-o", "yaml")
        assert "managedFields" in kubectl("get", "mrp", "a", "-o", "yaml", "--show-managed-fields")


def test_selectors_and_pages(kubectl: Kubectl) -> None:
    for n, name in enumerate("abcd"):
        kubectl("create", "-f", "-", given=policy(name, units=n % 2, labels={"app": name, "even": str(n % 2)}))

    def names(*words: str) -> list[str]:
        return [line.partition("/")[2] for line in kubectl("get", "mrp", "-o", "name", *words).split()]

    assert names("-l", "even=0,app in (a,b)") == ["a"]
    assert names("-l", "app notin (a),!absent") == ["b", "c", "d"]
    assert names("--field-selector", "spec.units=1") == ["b", "d"]
    assert names("--field-selector", "metadata.name!=a", "--chunk-size=1") == ["b", "c", "d"]
    assert "fieldSelector" in kubectl("get", "mrp", "--field-selector", "spec.lending.mode=None", code=1)


def test_it_follows_changes(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy("first"))
    with kubectl.following(
        "get", "mrp", "-w", "--no-headers", "-o", "custom-columns=N:.metadata.name,U:.spec.units"
    ) as seen:
        assert seen.stdout is not None
        assert seen.stdout.readline().split()[0] == "first"
        kubectl("create", "-f", "-", given=policy("second", units=3))
        while (line := seen.stdout.readline().split())[0] == "first":
            pass  # its status
        assert line == ["second", "3"]
    with kubectl.following("get", "mrp", "first", "-w") as seen:
        assert seen.stdout is not None
        assert seen.stdout.readline().split()[0] == "NAME"
        kubectl("patch", "mrp", "first", "--type=merge", "-p", '{"spec": {"units": 7}}')
        while "7" not in seen.stdout.readline().split():
            pass


@pytest.mark.parametrize("how", ["delete", "condition=Seen"])
def test_it_waits(kubectl: Kubectl, manager: Running, how: str) -> None:
    target = f"workload/{kubectl.namespace}/b"
    spec = {"target": target, "knobs": ["cpu.max"], "expires": "2090-01-01T00:00:00Z", "why": "test"}
    hold = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold", "metadata": {"name": "h"}, "spec": spec}
    kubectl("create", "-f", "-", given=hold)
    before = manager.watches()
    with kubectl.following("wait", "hold/h", f"--for={how}", "--timeout=30s") as waiting:
        assert eventually(lambda: manager.watches() > before)
        if how == "delete":
            kubectl("delete", "hold", "h")
        else:
            fields = hold | {"status": {"conditions": [{"type": "Seen", "status": "True"}]}}
            with manager.client() as api:
                path = f"/apis/j10ce.io/v1alpha1/namespaces/{kubectl.namespace}/holds/h/status"
                assert api.put(path, json=fields).status_code == 200
        assert waiting.wait(60) == 0
