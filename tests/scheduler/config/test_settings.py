"""A KubeSchedulerConfiguration becomes profiles, or a list of all that is wrong with it."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.scheduler.config.names import DEFAULTS, NAMES
from j10ce.scheduler.config.points import POINTS
from j10ce.scheduler.config.profiles import stock
from j10ce.scheduler.config.registry import BUILTIN
from j10ce.scheduler.config.sections import API_VERSIONS, KIND
from j10ce.scheduler.config.settings import SchedulerSettings, configured
from j10ce.scheduler.process.installed import installed
from tests.scheduler.config.files import HEAD, Mine, enable, findings, names, profile_of, wrong

FILTERS = (
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
)  # fmt: skip


def test_without_plugins_a_profile_is_that_of_kubernetes() -> None:
    profile = profile_of()
    assert profile.queue_sort is not None
    assert profile.queue_sort.name == "PrioritySort"
    assert names(profile)["filters"] == list(FILTERS)
    assert {s.plugin.name: s.weight for s in profile.scores} == {
        "TaintToleration": 3.0, "NodeAffinity": 2.0, "NodeResourcesFit": 1.0, "PodTopologySpread": 2.0,
        "InterPodAffinity": 2.0, "NodeResourcesBalancedAllocation": 1.0, "ImageLocality": 1.0,
    }  # fmt: skip
    assert names(profile)["post_filters"] == ["DefaultPreemption"]
    assert names(profile)["pre_enqueues"] == ["SchedulingGates"]
    assert names(stock("x")) == names(profile)
    assert [p.name for p in configured(HEAD).profiles] == ["default-scheduler"]


def test_three_points_alone_as_the_plugin_was_meant_to_be_enabled() -> None:
    profile = profile_of(
        {"queueSort": enable("Mine", disabled=("*",)), "preBind": enable("Mine"), "postBind": enable("Mine")}
    )
    assert profile.queue_sort is not None
    assert profile.queue_sort.name == "Mine"
    assert profile.queue_sort is profile.pre_binds[0] is profile.post_binds[0], "it is one plugin"
    assert names(profile)["pre_enqueues"] == ["SchedulingGates"], "it is asked nowhere else"
    assert names(profile)["post_filters"] == ["DefaultPreemption"]


@pytest.mark.parametrize(
    ("plugins", "at", "there"),
    [
        pytest.param({"filter": enable(disabled=("*",))}, "filters", [], id="none of a point"),
        pytest.param({"postFilter": enable(disabled=("DefaultPreemption",))}, "post_filters", [], id="one less"),
        pytest.param(
            {"filter": enable("InterPodAffinity", "NodeName", disabled=("*",))},
            "filters",
            ["InterPodAffinity", "NodeName"],
            id="those alone, in that order",
        ),
        pytest.param(
            {"postFilter": enable("ElasticQuota")}, "post_filters", ["DefaultPreemption", "ElasticQuota"], id="one more"
        ),
        pytest.param(
            {"multiPoint": enable("Mine", disabled=("PrioritySort",))},
            "pre_enqueues",
            ["SchedulingGates", "Mine"],
            id="wherever it answers",
        ),
        pytest.param({"multiPoint": enable("PrioritySort", disabled=("*",))}, "filters", [], id="no defaults at all"),
        pytest.param({"bind": enable("DefaultBinder")}, "binders", [], id="what the process does anyway"),
        pytest.param(
            {"filter": enable("NodePorts")},
            "filters",
            ["NodePorts", *(name for name in FILTERS if name != "NodePorts")],
            id="named at its point it comes first",
        ),
    ],
)  # fmt: skip
def test_what_is_asked_where(plugins: dict[str, Any], at: str, there: list[str]) -> None:
    assert names(profile_of(plugins))[at] == there


def test_weights_are_those_that_are_said() -> None:
    score = {"enabled": [{"name": "NodeAffinity", "weight": 7}]}
    general = {"enabled": [{"name": "ImageLocality", "weight": 5}]}
    weights = {s.plugin.name: s.weight for s in profile_of({"score": score, "multiPoint": general}).scores}
    assert (weights["NodeAffinity"], weights["ImageLocality"], weights["TaintToleration"]) == (7.0, 5.0, 3.0)


@pytest.mark.parametrize("version", API_VERSIONS)
def test_every_version_with_all_that_it_may_say(version: str) -> None:
    settings = configured(
        {
            "apiVersion": version,
            "kind": KIND,
            "parallelism": 16,
            "leaderElection": {"leaderElect": False, "leaseDuration": "20s", "resourceName": "ours"},
            "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 100, "burst": 200},
            "podInitialBackoffSeconds": 2,
            "podMaxBackoffSeconds": 20,
            "percentageOfNodesToScore": 50,
            "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
        }
    )
    assert [p.name for p in settings.profiles] == ["a", "b"]
    assert settings.backoff == (2.0, 20.0)
    assert not settings.election.leader_elect


ARGUMENTS = {
    "NodeResourcesFit": {
        "ignoredResources": ["example.com/foo"],
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 3}],
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        },
    },
    "NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu"}, {"name": "example.com/gpu", "weight": 1}]},
    "PodTopologySpread": {
        "defaultingType": "List",
        "defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    },
    "InterPodAffinity": {"hardPodAffinityWeight": 5, "ignorePreferredTermsOfExistingPods": True},
    "NodeAffinity": {
        "addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
            }
        }
    },
    "DefaultPreemption": {
        "apiVersion": API_VERSIONS[0], "kind": "DefaultPreemptionArgs", "minCandidateNodesPercentage": 50,
    },
    "VolumeBinding": {"bindTimeoutSeconds": 60},
    "Coscheduling": {"permitWaitingTimeSeconds": 10},
}  # fmt: skip


@pytest.mark.parametrize("plugin", ARGUMENTS)
def test_arguments_of_a_plugin_are_read(plugin: str) -> None:
    profile = profile_of({"multiPoint": enable(plugin)}, {"name": plugin, "args": ARGUMENTS[plugin]})
    assert plugin in {p.name for p in profile.plugins if hasattr(p, "name")}


@pytest.mark.parametrize(
    ("section", "path", "says"),
    [
        pytest.param(
            {"plugins": {"queueSort": enable("Mine")}}, "plugins.queueSort", "2 of them: PrioritySort, Mine",
            id="two sorts",
        ),
        pytest.param({"plugins": {"queueSort": enable(disabled=("*",))}}, "plugins.queueSort", "none", id="no sort"),
        pytest.param(
            {"plugins": {"filter": enable("NodePort")}}, "plugins.filter.enabled[0].name", "did you mean NodePorts?",
            id="unknown plugin",
        ),
        pytest.param(
            {"plugins": {"score": enable(disabled=("Imagelocality",))}}, "plugins.score.disabled[0].name",
            "did you mean ImageLocality?", id="unknown plugin that is disabled",
        ),
        pytest.param(
            {"plugins": {"score": enable("PrioritySort")}}, "plugins.score.enabled[0].name",
            "it is no score plugin; it answers at queueSort", id="wrong point",
        ),
        pytest.param(
            {"plugins": {"score": enable("NodeAffinity", "NodeAffinity")}}, "plugins.score.enabled[1].name", "twice",
            id="twice",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": -1}]}}},
            "plugins.score.enabled[0].weight", "no weight; use 1 to 10000", id="negative weight",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": "much"}]}}},
            "plugins.score.enabled[0].weight", "Expected `int`", id="a weight that is no number",
        ),
        pytest.param({"plugins": {"sort": {}}}, "plugins.sort", "unknown field", id="unknown point"),
        pytest.param({"pluginConfig": [{"name": "Nobody"}]}, "pluginConfig[0].name", "no such plugin", id="nobody's"),
        pytest.param(
            {"pluginConfig": [{"name": "NodeName", "args": {"a": 1}}]}, "pluginConfig[0].args", "no arguments",
            id="no arguments",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]},
            "pluginConfig[0].args.hardPodAffinityWeight", "<= 100", id="out of range",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"weight": 1}}]}, "pluginConfig[0].args.weight",
            "unknown field", id="unknown argument",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "VolumeBinding"}, {"name": "VolumeBinding"}]}, "pluginConfig[1].name",
            "configured twice", id="configured twice",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultConstraints": [{"topologyKey": "z"}]}}]},
            "pluginConfig[0].args.defaultConstraints", "use defaultingType: List", id="constraints of nobody",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {
                "type": "RequestedToCapacityRatio"}}}]},
            "pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio", "missing", id="no shape",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "DefaultPreemption", "args": {
                "minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}}]},
            "pluginConfig[0].args", "no node would be looked at", id="no candidates",
        ),
        pytest.param({"schedulerName": ""}, "schedulerName", "empty", id="no name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_profile_is_named(section: dict[str, Any], path: str, says: str) -> None:
    named = wrong(**section)
    assert f"profiles[0].{path}" in named
    assert says in named[f"profiles[0].{path}"]


@pytest.mark.parametrize(
    ("raw", "path", "says"),
    [
        pytest.param({"kind": KIND}, "apiVersion", "use one of", id="no version"),
        pytest.param(HEAD | {"kind": "Policy"}, "kind", f"use {KIND}", id="another kind"),
        pytest.param(HEAD | {"extenders": [{"urlPrefix": "http://x"}]}, "extenders[0]", "no extender", id="extender"),
        pytest.param(HEAD | {"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds", "use 1", id="no back-off"),
        pytest.param(HEAD | {"podMaxBackoffSeconds": -5}, "podMaxBackoffSeconds", "use 1", id="back-off below"),
        pytest.param(
            HEAD | {"leaderElection": {"leaseDuration": "5s"}}, "leaderElection", "must be longer", id="short lease"
        ),
        pytest.param(
            HEAD | {"leaderElection": {"leaseDuration": "soon"}}, "leaderElection.leaseDuration", "not a duration",
            id="bad duration",
        ),
        pytest.param(HEAD | {"profiles": []}, "profiles", "none", id="no profiles"),
        pytest.param(
            HEAD | {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}, "profiles[1].schedulerName",
            "another profile has it", id="one name twice",
        ),
        pytest.param(
            HEAD | {"profiles": [{"schedulerName": "a"}, {
                "schedulerName": "b", "plugins": {"queueSort": enable("Mine", disabled=("*",))}}]},
            "profiles[1].plugins.queueSort", "use PrioritySort in all", id="two queues",
        ),
        pytest.param([], "", "", id="no object"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_file_is_named(raw: object, path: str, says: str) -> None:
    named = findings(raw)
    assert path in named
    assert says in named[path]


def test_all_findings_come_at_once() -> None:
    named = findings(
        {
            "apiVersion": "v9",
            "kind": KIND,
            "colour": "red",
            "leaderElection": {"leaseDuration": -1},
            "profiles": [
                {"plugins": {"queueSort": enable("Mine"), "filter": enable("Nobody")}},
                {"schedulerName": "b", "pluginConfig": [{"name": "NodeAffinity", "args": {"x": 1}}]},
            ],
        }
    )
    assert set(named) == {
        "apiVersion",
        "colour",
        "leaderElection.leaseDuration",
        "profiles[0].plugins.queueSort",
        "profiles[0].plugins.filter.enabled[0].name",
        "profiles[1].pluginConfig[0].args.x",
    }


WORDS = sorted({
    "apiVersion", "kind", "profiles", "schedulerName", "plugins", "pluginConfig", "name", "args", "enabled", "disabled",
    "weight", "leaderElection", "leaseDuration", *POINTS, "multiPoint", "scoringStrategy", "shape", "extenders",
})  # fmt: skip
VALUES = st.sampled_from([*DEFAULTS, *WORDS, API_VERSIONS[0], KIND, "*", "10s"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)


@given(JSON | st.builds(lambda rest: HEAD | {"profiles": [rest]}, JSON))
def test_whatever_a_file_says_it_is_read_or_what_is_wrong_is_named(raw: object) -> None:
    assert isinstance(read_or_refused(raw), SchedulerSettings | Invalid)


def read_or_refused(raw: object) -> SchedulerSettings | Invalid:
    try:
        return configured(raw)
    except Invalid as e:
        return e


def test_plugins_of_other_distributions_come_by_their_entry_points() -> None:
    here = "tests.scheduler.config.test_settings"
    plugins, problems = installed(
        [
            EntryPoint("Mine", f"{here}:Mine", "j10ce.scheduler"),
            EntryPoint("NodeName", f"{here}:Mine", "j10ce.scheduler"),
            EntryPoint("Gone", f"{here}:Gone", "j10ce.scheduler"),
        ]
    )
    assert list(plugins) == ["Mine"]
    assert [f.problem.partition(":")[0] for f in problems] == ["cannot be loaded", "another plugin has this name"]
    assert isinstance(plugins["Mine"].make(), Mine)


def test_every_plugin_has_the_name_by_which_it_is_registered() -> None:
    assert tuple(BUILTIN) == NAMES
    all_but_one = enable(*(name for name in BUILTIN if name != "PrioritySort"), disabled=("PrioritySort",))
    profile = profile_of({"multiPoint": all_but_one})
    assert {getattr(p, "name", "") for p in profile.plugins} == {*BUILTIN} - {"PrioritySort"}
