"""`kubectl apply` and `diff`, client-side and server-side."""

from __future__ import annotations

import pytest

from tests.kubectl.kubectl import KIND, Kubectl, policy

pytestmark = pytest.mark.lab

SERVER = ("apply", "--server-side", "-f", "-")


def test_client_side(kubectl: Kubectl) -> None:
    apply = ("apply", "-f", "-")
    assert "created" in kubectl(*apply, given=policy(units=1, ttl="1h"))
    assert "unchanged" in kubectl(*apply, given=policy(units=1, ttl="1h"))
    assert "configured" in kubectl(*apply, given=policy(units=2))
    assert kubectl.read("mrp", "db")["spec"] == {"minimum": {"cpu": "1m"}, "units": 2}


@pytest.mark.parametrize("more", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_diff_shows_what_apply_would_do(kubectl: Kubectl, more: tuple[str, ...]) -> None:
    kubectl("apply", *more, "-f", "-", given=policy(units=1))
    kubectl("diff", *more, "-f", "-", given=policy(units=1))
    output = kubectl("diff", *more, "-f", "-", given=policy(units=2), code=1)
    assert "-  units: 1" in output
    assert "+  units: 2" in output


def test_server_side_creates_and_takes_back(kubectl: Kubectl) -> None:
    assert "serverside-applied" in kubectl(*SERVER, given=policy(units=1, ttl="1h", labels={"app": "db"}))
    before = kubectl.read("mrp", "db")
    assert "serverside-applied" in kubectl(*SERVER, given=policy(units=1, ttl="1h", labels={"app": "db"}))
    assert kubectl.read("mrp", "db")["metadata"]["generation"] == before["metadata"]["generation"]
    kubectl(*SERVER, given=policy(units=1))
    after = kubectl.read("mrp", "db")
    assert after["spec"] == {"minimum": {"cpu": "1m"}, "units": 1}
    assert "labels" not in after["metadata"]
    assert kubectl.owners("db")["kubectl Apply"] == {"f:spec": {"f:minimum": {"f:cpu": {}}, "f:units": {}}}


def test_two_managers_share_an_object(kubectl: Kubectl) -> None:
    kubectl(*SERVER, given=policy())
    more = {**KIND, "metadata": {"name": "db", "labels": {"team": "shop"}}, "spec": {"units": 4}}
    kubectl(*SERVER, "--field-manager=scaler", "--validate=false", given=more)  # half an object is right here
    kubectl(*SERVER, given=policy())
    assert kubectl.read("mrp", "db")["spec"] == {"minimum": {"cpu": "1m"}, "units": 4}
    assert kubectl.owners("db")["scaler Apply"] == {
        "f:metadata": {"f:labels": {"f:team": {}}},
        "f:spec": {"f:units": {}},
    }


def test_a_conflict_names_the_owner_and_can_be_forced(kubectl: Kubectl) -> None:
    kubectl(*SERVER, given=policy(units=1))
    kubectl("patch", "mrp", "db", "--type=merge", "-p", '{"spec": {"units": 2}}')
    output = kubectl(*SERVER, given=policy(units=1), code=1)
    assert "Apply failed with 1 conflict" in output
    assert '"kubectl-patch": .spec.units' in output
    assert "--force-conflicts" in output, "kubectl says how to go on"
    kubectl(*SERVER, "--force-conflicts", given=policy(units=1))
    assert kubectl.read("mrp", "db")["spec"]["units"] == 1
    assert "kubectl-patch Update" not in kubectl.owners("db")


def test_moving_from_client_side_to_server_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=policy(units=1, ttl="1h"))
    assert "serverside-applied" in kubectl(*SERVER, given=policy(units=2, ttl="1h"))
    if not kubectl.old:  # it takes over what it owned on the client's side
        kubectl(*SERVER, given=policy(units=2))
        assert kubectl.read("mrp", "db")["spec"] == {"minimum": {"cpu": "1m"}, "units": 2}


def test_prune(kubectl: Kubectl) -> None:
    for name in ("kept", "dropped"):
        kubectl("apply", "-f", "-", given=policy(name, labels={"app": "x"}))
    allow = "--prune-whitelist" if kubectl.old else "--prune-allowlist"
    pruned = kubectl(
        "apply", "--prune", "-l", "app=x", f"{allow}=j10ce.io/v1alpha1/MinimalReservationPolicy",
        "-f", "-", given=policy("kept", labels={"app": "x"}),
    )  # fmt: skip
    assert "dropped pruned" in pruned
    assert [item["metadata"]["name"] for item in kubectl.read("mrp")["items"]] == ["kept"]
