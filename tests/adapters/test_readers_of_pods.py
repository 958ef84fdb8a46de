"""A pod is one workload to all who read pods: the agent, `plan`, `explain pod/`, the extender and the webhooks."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.adapters.kubernetes_workload import workload
from j10ce.agent.ring import what_if
from j10ce.agent.ring.kubelets_tree import in_kubelets_tree
from j10ce.cli.client import Client
from j10ce.cli.pods.pod import explain_pod
from j10ce.errors import NotFound
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.webhook import PodRules
from j10ce.model.kinds import IGNORE_LABEL, PROFILE_LABEL, WORKLOAD_LABEL, Meta, QoSProfile, Selector, Tier
from j10ce.model.kube.native import NativeObject, decode_native
from j10ce.model.kube.pod import Pod
from j10ce.model.schema import plain
from j10ce.model.stored import Key
from j10ce.model.workload import Handle, Workload
from j10ce.policy.choose import Choice, Chooser
from j10ce.policy.profiles import TRUSTED_LABEL, builtin
from j10ce.policy.select import Labels
from j10ce.scheduler.extender.occupancy import Guest, Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, profile
from tests.style.sources import dotted, product

ADOPTED = Handle("kubepods/podx", made=False)
NAMES = ("web", "db")
PROFILES: tuple[QoSProfile, ...] = (
    *builtin(),
    profile("by-app", "besteffort", priority=1, selector=Selector(match_labels={"app": "a"})),
    profile("by-name", "sensitive", priority=2, selector=Selector(match_labels={WORKLOAD_LABEL: "web"})),
)
AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "1m", "100m", "1.5", "2"]),
        "memory": st.sampled_from(["0", "1", "64Mi", "1Gi"]),
        "kubernetes.io/batch-cpu": st.sampled_from(["500", "1k"]),
    },
)
CONTAINER = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"])},
    optional={
        "resources": st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS}),
        "restartPolicy": st.just("Always"),
    },
)
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "app": st.sampled_from("ab"),
        PROFILE_LABEL: st.sampled_from(["be", "ls", "system", "unheard-of", ""]),
        IGNORE_LABEL: st.sampled_from(["true", "false"]),
        WORKLOAD_LABEL: st.sampled_from(NAMES),  # which is never believed
    },
)
NAMESPACE_LABELS = st.fixed_dictionaries(
    {},
    optional={
        PROFILE_LABEL: st.sampled_from(["be", "system"]),
        IGNORE_LABEL: st.just("true"),
        TRUSTED_LABEL: st.sampled_from(["true", "false"]),
    },
)


class Shown(NamedTuple):
    """A pod as an API server shows it, and the labels of its namespace."""

    raw: dict[str, Any]
    namespace_labels: dict[str, str]

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"]["namespace"])

    @property
    def pod(self) -> Pod:
        return decode_native(msgspec.json.encode(self.raw), Pod)


@st.composite
def shown(draw: st.DrawFn) -> Shown:
    meta = {
        "name": draw(st.sampled_from(NAMES)),
        "namespace": draw(st.sampled_from(["shop", "kube-system", "j10ce-system"])),
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": draw(LABELS),
        "annotations": draw(st.sampled_from([{}, {"kubernetes.io/config.mirror": "m"}, {"j10ce.io/a": "1"}])),
    }
    spec = {
        "nodeName": "n1",
        "priorityClassName": draw(st.sampled_from(["", "system-node-critical"])),
        "priority": draw(st.sampled_from([None, 0, 2000])),
        "containers": draw(st.lists(CONTAINER, min_size=1, max_size=2)),
        "initContainers": draw(st.lists(CONTAINER, max_size=1)),
    }
    spec = {name: value for name, value in spec.items() if value is not None}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {}}
    return Shown(raw, draw(NAMESPACE_LABELS))


def by_the_agent(of: Shown) -> Workload:
    return workload(of.pod, of.namespace_labels, ADOPTED, {})


def chosen(member: Workload) -> Choice:
    return Chooser(PROFILES).choose(member)


class Api(Client):
    """An API server with this pod."""

    def __init__(self, of: Shown) -> None:
        super().__init__("http://127.0.0.1:1")
        self._of = of

    def get(self, path: str, **_: str) -> Any:
        if "/pods/" in path:
            return self._of.raw
        if path.startswith("/api/v1/namespaces/"):
            return {"metadata": {"name": self._of.namespace, "labels": self._of.namespace_labels}}
        if path.endswith("/qosprofiles"):
            return {"items": [plain(p) for p in PROFILES]}
        if path.endswith("/minimalreservationpolicies"):
            return {"items": []}
        raise NotFound(path)


def by_the_extender(of: Shown) -> Guest:
    store = MemoryStore(lambda: WALL)
    occupants = Occupants(store, View(store), lambda: WALL, Occupancy(), Offers())
    occupants._chooser = Chooser(PROFILES)
    space = NativeObject(metadata=Meta(name=of.namespace, labels=of.namespace_labels))  # type: ignore[arg-type]
    occupants._namespaces.held[Key("Namespace", "", of.namespace)] = space  # type: ignore[assignment]
    return occupants.guest(of.pod)


def by_the_webhook(of: Shown) -> str:
    def known(_: str) -> Labels:
        return of.namespace_labels

    rules = PodRules(MemoryStore(lambda: WALL), known, lambda: list(PROFILES))
    return asyncio.run(rules.profile(of.namespace, of.raw))


@settings(max_examples=300, deadline=None)
@given(shown())
def test_on_paper_a_pod_is_the_workload_that_an_agent_makes_of_it(of: Shown) -> None:
    paper = in_kubelets_tree(what_if._pod(of.raw, {of.namespace: of.namespace_labels}), ())
    agent = by_the_agent(of)
    assert replace(paper, handle=ADOPTED) == agent
    assert chosen(paper) == chosen(agent)


@settings(max_examples=150, deadline=None)
@given(shown())
def test_explain_names_the_profile_that_the_agent_takes(of: Shown) -> None:
    agent = chosen(by_the_agent(of))
    facts = explain_pod(Api(of), of.namespace, of.raw["metadata"]["name"])
    assert (facts["tier"], facts["why"], tuple(facts["notes"])) == (agent.tier.value, agent.why, agent.notes)
    assert facts["profile"] == (agent.profile.metadata.name if agent.profile else "")


@settings(max_examples=300, deadline=None)
@given(shown())
def test_the_extender_counts_a_pod_as_the_agent_treats_it(of: Shown) -> None:
    agent, guest = by_the_agent(of), by_the_extender(of)
    choice = chosen(agent)
    assert (guest.namespace, guest.name, guest.labels) == (agent.namespace, agent.name, agent.labels)
    assert guest.request[:2] == agent.requests[:2]
    assert guest.since == agent.since
    assert guest.ignored == choice.ignored
    assert guest.gives_way == (choice.profile is not None and choice.tier is Tier.BESTEFFORT)


@settings(max_examples=300, deadline=None)
@given(shown())
def test_a_pod_that_a_webhook_labels_keeps_what_the_agent_would_have_given_it(of: Shown) -> None:
    name = by_the_webhook(of)
    if name:
        of.raw["metadata"]["labels"] |= {PROFILE_LABEL: ""}
        before = chosen(by_the_agent(of))
        of.raw["metadata"]["labels"][PROFILE_LABEL] = name
        after = chosen(by_the_agent(of))
        assert before.profile is not None
        assert (before.profile, before.tier) == (after.profile, after.tier)


def test_the_adapters_module_alone_makes_workloads_of_pods() -> None:
    """Who reads pods and makes a Workload of its own, of what it has at hand, is compared above."""
    makers = {
        source.module
        for source in product()
        if any(dotted(node.func) == "Workload" for node in source.calls())
        and any("model.kube.pod" in line for line in source.text.splitlines() if "import" in line)
    }
    assert makers == {"adapters/kubernetes_workload.py"}
