"""convert and plan over Koordinator's ConfigMap: what is printed where, and what is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from j10ce.cli.dialects.convert import convert_command
from j10ce.cli.host.plan import plan_command
from j10ce.cli.manifests import load
from j10ce.errors import Invalid
from j10ce.model.quantity import Quantity

EXAMPLE = Path(__file__).parents[3] / "examples/koordinator"
CONFIG, NODE = EXAMPLE / "slo-controller-config.yaml", EXAMPLE / "node.yaml"


def config_map(folder: Path, name: str = "slo-controller-config", **data: Any) -> Path:
    file = folder / f"{name}.yaml"
    keys = {key.replace("_", "-"): text for key, text in data.items()}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": keys}))
    return file


def convert(*files: Path, options: tuple[str, ...] = ()) -> Result:
    words = [word for file in files for word in ("-f", str(file))]
    return CliRunner().invoke(convert_command, [*words, *options])


def plan(*files: Path) -> Result:
    return CliRunner().invoke(plan_command, ["--alone", *(word for file in files for word in ("-f", str(file)))])


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_what_is_printed_can_be_applied(tmp_path: Path, style: str) -> None:
    result = convert(CONFIG, NODE, options=("-o", style))
    (tmp_path / f"made.{style}").write_text(result.stdout)
    names = [raw["metadata"]["name"] for raw in load([str(tmp_path)])]
    assert len(names) == 6
    assert "koordinator-resource-threshold-online" in names
    assert all(name.startswith("koordinator-") for name in names)


def test_what_is_not_heeded_is_said_on_standard_error_and_is_no_failure() -> None:
    result = convert(CONFIG)
    assert result.exit_code == 0
    assert "beClass.networkQOS.egressLimit = 40: not heeded" in result.stderr
    assert "note:" not in result.stdout


def test_a_mistake_prints_nothing_unless_it_may_be_left_out(tmp_path: Path) -> None:
    good = '{"clusterStrategy": {"watermarkScaleFactor": 20}}'
    file = config_map(tmp_path, cpu_burst_config="{", system_config=good)
    refused = convert(file)
    assert isinstance(refused.exception, Invalid)
    assert refused.stdout == ""
    lenient = convert(file, options=("--lenient",))
    assert lenient.exit_code == 0
    assert "cpu-burst-config" in lenient.stderr
    assert yaml.safe_load(lenient.stdout)["spec"]["sysctls"] == {"watermarkScaleFactor": 20}


def test_files_without_the_configmap_are_nothing_to_convert() -> None:
    assert isinstance(convert(NODE).exception, Invalid)


def test_a_key_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    refused = convert(config_map(tmp_path, cpu_burst_config={"clusterStrategy": {}}))
    assert "data.cpu-burst-config: not a text" in str(refused.exception)


def test_a_configmap_that_switches_nothing_on_says_so(tmp_path: Path) -> None:
    result = convert(config_map(tmp_path, resource_threshold_config="{}"))
    assert result.stdout == ""
    assert "nothing in it is switched on" in result.stderr


def test_a_plan_heeds_the_configmap_on_the_node_that_is_planned_for(tmp_path: Path) -> None:
    text = plan(EXAMPLE).stdout
    assert "workload/shop/be-pod-example: profile be" in text
    assert "memory.high = 1.8Gi  (memory-qos: slows down 80 %" in text
    entry = {
        "name": "off",
        "nodeSelector": {"matchLabels": {"node-pool": "online"}},
        "beClass": {"memoryQOS": {"enable": False}},
    }
    cluster = {"beClass": {"memoryQOS": {"enable": True, "throttlingPercent": 70}}}
    key = json.dumps({"clusterStrategy": cluster, "nodeStrategies": [entry]})
    assert "70 %" not in plan(EXAMPLE / "pods.yaml", NODE, config_map(tmp_path, resource_qos_config=key)).stdout


def test_a_plan_of_a_configmap_that_is_wrong_is_refused(tmp_path: Path) -> None:
    result = plan(
        EXAMPLE / "pods.yaml", NODE, config_map(tmp_path, cpu_burst_config='{"clusterStrategy": {"policy": 1}}')
    )
    assert isinstance(result.exception, Invalid)


def test_a_plan_names_configmaps_that_it_does_not_look_at(tmp_path: Path) -> None:
    result = plan(EXAMPLE / "pods.yaml", NODE, config_map(tmp_path, name="nginx"))
    assert "ConfigMap nginx is not looked at; the one that counts is slo-controller-config" in result.stderr


TERWAY = "hw_tx_bps_max 900000000\noffline_l2_tx_bps_max=300000000\n"


def terway(folder: Path, text: str = TERWAY, name: str = "global_bps_config") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_terways_file_of_a_node_says_what_the_named_links_carry_and_what_was_made_of_it(tmp_path: Path) -> None:
    result = convert(terway(tmp_path), options=("--link", "eth0", "--link", "eth1"))
    (tmp_path / "made.yaml").write_text(result.stdout)
    (made,) = load([str(tmp_path / "made.yaml")])
    assert {name: Quantity.parse(q["egress"]) for name, q in made["spec"]["network"]["links"].items()} == {
        "eth0": Quantity.parse("7200Mbit"),
        "eth1": Quantity.parse("7200Mbit"),
    }
    assert "hw_tx_bps_max = 900000000: is network.links.eth0.egress: 7.2Gbit" in result.stderr
    assert "l2_tx_bps_max = 300000000: not heeded" in result.stderr


def test_without_a_link_terways_rates_are_named_and_nothing_is_made(tmp_path: Path) -> None:
    result = convert(terway(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "say --link eth0" in result.stderr


def test_terways_pods_are_left_to_their_annotations(tmp_path: Path) -> None:
    pod = {"podName": "web-0", "podNamespace": "shop", "prio": 2}
    result = convert(terway(tmp_path, json.dumps({"a": pod}), "pod.json"))
    assert "pod.json = '1 pods': no object is made of them; agents with --dialect terway" in result.stderr


def test_a_mistake_in_terways_file_prints_nothing_unless_it_may_be_left_out(tmp_path: Path) -> None:
    file = terway(tmp_path, TERWAY + "speed 5\n")
    refused = convert(file, options=("--link", "eth0"))
    assert "global_bps_config:3" in str(refused.exception)
    assert refused.stdout == ""
    assert "egress" in convert(file, options=("--link", "eth0", "--lenient")).stdout


@pytest.mark.parametrize("link", ["", "eth 0", "a" * 16, "eth0/x"])
def test_what_names_no_link_is_refused(tmp_path: Path, link: str) -> None:
    assert "no name of a link" in str(convert(terway(tmp_path), options=("--link", link)).exception)


def test_terways_files_are_converted_by_themselves(tmp_path: Path) -> None:
    mixed = convert(terway(tmp_path), CONFIG, options=("--link", "no link"))
    assert isinstance(mixed.exception, Invalid)
    assert [f.path for f in mixed.exception.findings] == [str(CONFIG), "--link"]
    assert isinstance(convert(CONFIG, options=("--link", "eth0")).exception, Invalid)
