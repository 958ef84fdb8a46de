"""QosAware by configuration: as it was published, and as the example has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from j10ce.daemon.config_file import plain_of
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.config.settings import configured
from j10ce.scheduler.cycle.decisions import Bind
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from tests.scheduler.config.files import enable, profile_of, wrong

SNIPPET = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ours
  plugins:
    queueSort:
      enabled:
        - name: QosAware
      disabled:
        - name: "*"
    preBind:
      enabled:
        - name: QosAware
    postBind:
      enabled:
        - name: QosAware
"""


def test_the_published_snippet_works_unchanged() -> None:
    settings = configured(plain_of(SNIPPET.encode(), "snippet"))
    profile = settings.profiles[0]
    assert isinstance(profile.queue_sort, QosAware)
    assert profile.pre_binds == profile.post_binds == (profile.queue_sort,)
    made = Scheduler(settings.profiles)
    made.put_node(NodeFacts("n", {}, {"cpu": 1000, "pods": 110}), 0.0)
    made.put_pod(PodFacts("u", "shop", "web", scheduler="ours"), 0.0)
    assert [d.node for d in made.step(1.0) if isinstance(d, Bind)] == ["n"]


def test_the_example_is_a_scheduler_by_slos(clone: Path) -> None:
    settings = configured(plain_of((clone / "examples/scheduler/qosaware.yaml").read_bytes(), "example"))
    profile = settings.profiles[0]
    assert isinstance(profile.queue_sort, QosAware)
    assert profile.post_filters == (profile.queue_sort,)
    assert profile.queue_sort.settings == QosSettings()


def test_arguments_of_the_published_plugin_are_those_of_classic_mode() -> None:
    args = {
        "mode": "classic",
        "safetyMargin": "20s",
        "minimumRunningTime": "10m",
        "acceptablePreemptionOverhead": 0.05,
        "admission": "greedy",
    }
    plugins = {"multiPoint": enable("QosAware", disabled=("PrioritySort", "DefaultPreemption"))}
    plugin = profile_of(plugins, {"name": "QosAware", "args": args}).queue_sort
    assert isinstance(plugin, QosAware)
    assert plugin.settings == QosSettings()._replace(
        mode="classic",
        safety_margin_s=20.0,
        minimum_running_s=600.0,
        acceptable_overhead=0.05,
        admission="greedy",
    )


@pytest.mark.parametrize(
    ("args", "field"),
    [
        pytest.param({"safetyMargin": "20"}, "safetyMargin", id="no unit"),
        pytest.param({"minimumRunningTime": -1}, "minimumRunningTime", id="no duration"),
        pytest.param({"slo": 7}, "slo", id="an slo above one"),
        pytest.param({"mode": "eager"}, "mode", id="no mode"),
        pytest.param({"periods": []}, "periods", id="no period"),
        pytest.param({"acceptablePreemptionOverhead": "nan"}, "acceptablePreemptionOverhead", id="no share"),
    ],
)
def test_wrong_arguments_are_named(args: dict[str, Any], field: str) -> None:
    assert f"profiles[0].pluginConfig[0].args.{field}" in wrong(pluginConfig=[{"name": "QosAware", "args": args}])
