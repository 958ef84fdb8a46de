"""Both processes may do what their roles say and nothing else; tokens of agents are good for their own node."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
import yaml

from tests.kube.deploy.leftovers import DEPLOY, SYSTEM
from tests.kubectl.kubectl import Kubectl
from tests.lab.kube.cluster import Answer, Cluster
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.kwok import node

ACCOUNTS = ("j10ce-controller-manager", "j10ce-agent")
NODES = "/apis/j10ce.io/v1alpha1/nodeqoses"
HOLDS = "/apis/j10ce.io/v1alpha1/namespaces/default/holds"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
FORBIDDEN = [  # what they would be tempted to, or be used for
    ("j10ce-agent", "get secrets"),
    ("j10ce-agent", "create pods"),
    ("j10ce-agent", "create pods/exec"),
    ("j10ce-agent", "delete pods"),
    ("j10ce-agent", "create pods/eviction"),
    ("j10ce-agent", "patch pods"),
    ("j10ce-agent", "get nodes/proxy"),
    ("j10ce-agent", "patch nodes"),
    ("j10ce-agent", "update minimalreservationpolicies.j10ce.io"),
    ("j10ce-agent", "patch minimalreservationpolicies.j10ce.io/status"),
    ("j10ce-agent", "patch nodeqoses.j10ce.io"),
    ("j10ce-agent", "delete nodeqoses.j10ce.io"),
    ("j10ce-agent", "create serviceaccounts/token"),
    ("j10ce-controller-manager", "get secrets"),
    ("j10ce-controller-manager", "create secrets"),
    ("j10ce-controller-manager", "create pods"),
    ("j10ce-controller-manager", "delete pods"),
    ("j10ce-controller-manager", "create pods/exec"),
    ("j10ce-controller-manager", "create pods/binding"),
    ("j10ce-controller-manager", "patch nodes"),
    ("j10ce-controller-manager", "delete minimalreservationpolicies.j10ce.io"),
    ("j10ce-controller-manager", "update customresourcedefinitions.apiextensions.k8s.io"),
    ("j10ce-controller-manager", "create validatingwebhookconfigurations.admissionregistration.k8s.io"),
    ("j10ce-controller-manager", "patch clusterroles.rbac.authorization.k8s.io"),
]


Caller = Callable[..., Any]


class Right(NamedTuple):
    verb: str
    group: str
    resource: str
    name: str = ""  # empty: any


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("namespace", ["j10ce-system", "default"])
def test_an_account_may_do_what_its_roles_say_and_nothing_else(
    installed: Cluster, kubectls: Callable[[str], Kubectl], account: str, namespace: str
) -> None:
    kubectl = kubectls("kubectl")
    assert given(kubectl, account, namespace) - given(kubectl, "default", namespace) == set(written(account, namespace))


def written(account: str, namespace: str) -> Iterator[Right]:
    """As the manifests say."""
    file = DEPLOY / "base" / f"{account.removeprefix('j10ce-')}-rbac.yaml"
    for role in yaml.safe_load_all(file.read_text()):
        if role["metadata"].get("namespace", namespace) == namespace:
            for rule in role.get("rules", ()):
                yield from spread(rule)


def given(kubectl: Kubectl, account: str, namespace: str) -> set[Right]:
    """As the API server sees it."""
    user = f"--as=system:serviceaccount:j10ce-system:{account}"
    review = json.dumps({"spec": {"namespace": namespace}})
    output = json.loads(kubectl(user, "create", "--raw", REVIEWS, "-f", "-", given=review))
    return {right for rule in output["status"]["resourceRules"] for right in spread(rule)}


def spread(rule: dict[str, list[str]]) -> Iterator[Right]:
    names = rule.get("resourceNames") or [""]
    return itertools.starmap(Right, itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"], names))


@pytest.mark.parametrize(("account", "what"), [pytest.param(*row, id=" ".join(row)) for row in FORBIDDEN])
def test_an_account_must_not(installed: Cluster, kubectls: Callable[[str], Kubectl], account: str, what: str) -> None:
    verb, _, resource = what.partition(" ")
    resource, _, subresource = resource.partition("/")
    words = ("auth", "can-i", verb, resource, *((f"--subresource={subresource}",) if subresource else ()))
    user = f"--as=system:serviceaccount:j10ce-system:{account}"
    assert kubectls("kubectl")(user, *words, "-n", "j10ce-system", code=1).split()[-1] == "no"


@pytest.fixture
def agents(
    installed: Cluster, version: Version, kubectls: Callable[[str], Kubectl]
) -> Iterator[Callable[[str], Caller]]:
    """Calls with the token of the agent's pod on a node."""
    if version == "old":
        pytest.skip("Unsupported: tokens name their node since Kubernetes 1.30")
    made: list[str] = []

    def on(name: str) -> Caller:
        installed.call("POST", "/api/v1/nodes", node(0) | {"metadata": {"name": name}})
        container = {"name": "agent", "image": "none"}
        spec = {"nodeName": name, "serviceAccountName": "j10ce-agent", "containers": [container]}
        pod = installed.call("POST", f"{SYSTEM}/pods", {"metadata": {"name": f"agent-on-{name}"}, "spec": spec})
        made.extend((f"{SYSTEM}/pods/agent-on-{name}?gracePeriodSeconds=0", f"/api/v1/nodes/{name}"))
        bound = {"apiVersion": "v1", "kind": "Pod", "name": f"agent-on-{name}", "uid": pod["metadata"]["uid"]}
        path = f"{SYSTEM}/serviceaccounts/j10ce-agent/token"
        token = installed.call("POST", path, {"spec": {"boundObjectRef": bound}})["status"]["token"]
        return partial(installed.call, token=token)

    yield on
    for path in made:
        installed.call("DELETE", path)


def test_an_agent_writes_about_its_own_node_alone(installed: Cluster, agents: Callable[[str], Caller]) -> None:
    first, second = agents("n1"), agents("n2")
    created = ("POST", NODES, named("n1"))
    in_force(installed, second, created)
    fields = named("n1") | {"status": {"node": {"armed": True}}}
    reported = ("PATCH", f"{NODES}/n1/status?fieldManager=j10ce-agent&force=true", fields)
    with pytest.raises(Answer, match="the agent of n2 may not write about n1"):
        second(*created)
    first(*created)
    with pytest.raises(Answer, match="the agent of n2 may not write about n1"):
        second(*reported, content="application/apply-patch+yaml")
    first(*reported, content="application/apply-patch+yaml")


def test_an_agent_holds_settings_on_its_own_node_alone(installed: Cluster, agents: Callable[[str], Caller]) -> None:
    first, second = agents("n3"), agents("n4")
    in_force(installed, second, ("POST", HOLDS, hold("n3")))
    with pytest.raises(Answer, match="the agent of n4 may not hold settings on n3"):
        second("POST", HOLDS, hold("n3"))
    with pytest.raises(Answer, match="the agent of n4 may not hold settings on every node"):
        second("POST", HOLDS, hold(""))
    first("POST", HOLDS, hold("n3"))
    with pytest.raises(Answer, match="the agent of n4 may not release settings on n3"):
        second("DELETE", f"{HOLDS}/freeze")
    first("DELETE", f"{HOLDS}/freeze")


def test_a_hold_reaches_its_own_namespace_alone(installed: Cluster, agents: Callable[[str], Caller]) -> None:
    """Whoever makes it, and while no manager answers."""

    def refuses() -> bool:
        try:
            installed.call("POST", f"{HOLDS}?dryRun=All", hold("", "node"))
        except Answer as answer:
            return "beyond the reach of namespace default" in str(answer)
        return False

    installed.wait("the admission policy", refuses)
    for target in ("workload/other/web", "part/other/web/app", "group/kubepods", "workload/defaultish/web"):
        with pytest.raises(Answer, match="beyond the reach of namespace default"):
            installed.call("POST", f"{HOLDS}?dryRun=All", hold("", target))
    installed.call("POST", f"{HOLDS}?dryRun=All", hold("", "workload/default/web"))
    system = HOLDS.replace("/default/", "/j10ce-system/")
    installed.call("POST", f"{system}?dryRun=All", hold("", "workload/other/web"))


def test_a_token_without_a_node_is_good_for_nothing(installed: Cluster, agents: Callable[[str], Caller]) -> None:
    path = f"{SYSTEM}/serviceaccounts/j10ce-agent/token"
    free = partial(installed.call, token=installed.call("POST", path, {"spec": {}})["status"]["token"])
    in_force(installed, free, ("POST", NODES, named("n5")))
    with pytest.raises(Answer, match="the token of an agent has to be bound to its pod"):
        free("POST", NODES, named("n5"))


def in_force(cluster: Cluster, stranger: Caller, call: tuple[str, str, object]) -> None:
    """Admission policies come into force a little after they are stored."""
    method, path, body = call

    def refuses() -> bool:
        try:
            stranger(method, f"{path}?dryRun=All", body)
        except Answer as answer:
            return answer.status == 403
        return False

    cluster.wait("the admission policy", refuses)


def named(node_name: str) -> dict[str, Any]:
    return {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": node_name}}


def hold(node_name: str, target: str = "workload/default/web") -> dict[str, Any]:
    spec = {"target": target, "knobs": ["cpu.max"], "expires": "2030-01-01T00:00:00Z", "why": "a test"}
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold", "metadata": {"name": "freeze"}}
    return kind | {"spec": spec | ({"node": node_name} if node_name else {})}
