"""Values that are names: what a hold may say of the group that all threads are in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import KNOBS, NO_TEXT, NODE, Setting, parse_value, read_names, render


@pytest.mark.parametrize(("text", "value"), [("be", "be"), (" j10ce-be_1.x ", "j10ce-be_1.x"), (NO_TEXT, "")])
@pytest.mark.parametrize("knob", ["resctrl.group", "sched.cookie"])
def test_a_name_is_a_value(knob: str, text: str, value: str) -> None:
    assert parse_value(knob, text) == value


@pytest.mark.parametrize("text", ["", "..", "a/b", "#1f", "a b", "é", "x" * 129, "-a"])
def test_what_is_no_name_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="takes a name of letters, digits"):
        parse_value("resctrl.group", text)


@given(st.text(max_size=40))
def test_what_is_taken_is_written_as_it_is_shown(text: str) -> None:
    try:
        value = parse_value("sched.cookie", text)
    except ValueError:
        return
    assert parse_value("sched.cookie", render("sched.cookie", value)) == value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("net.egress.ceil[eth0]", [("net.egress.ceil", "eth0")]),
        ("net.egress.floor[eth0.100@bond0]", [("net.egress.floor", "eth0.100@bond0")]),
        ("io.max[8:0].rbps", [("io.max.rbps", "8:0")]),
        ("io.max.rbps[8:0]", [("io.max.rbps", "8:0")]),
        ("io.max[8:0]", [(f"io.max.{what}", "8:0") for what in ("rbps", "wbps", "riops", "wiops")]),
        ("io.max", [(f"io.max.{what}", "") for what in ("rbps", "wbps", "riops", "wiops")]),
        ("io.weight", [("io.weight", "")]),
        ("cpu.max", [("cpu.max", "")]),
        ("io.max[8:0].bps", []),
        ("io.max[8:0", []),
        ("io.max[]", []),
        ("warp.speed", []),
    ],
)
def test_a_name_means_the_settings_that_it_spells(text: str, meant: list[tuple[str, str]]) -> None:
    assert [*read_names(text)] == meant


@pytest.mark.parametrize("setting", [(k.name, "8:0") for k in KNOBS.values() if k.several])
def test_a_setting_is_read_back_from_its_name(setting: tuple[str, str]) -> None:
    assert [*read_names(Setting(NODE, *setting).name)] == [setting]


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [
        ("net.egress.ceil", "50Mbit", 50e6),
        ("net.egress.ceil", "64kbit", 64e3),
        ("net.egress.ceil", "max", float("inf")),
        ("io.max.wbps", "50M", 50e6),
        ("io.max.wbps", "1Gi", float(1 << 30)),
        ("io.latency", "5000 µs", 5000.0),
        ("io.cost.qos", "enable=1 ctrl=user rpct=95.00", "enable=1 ctrl=user rpct=95.00"),
        ("net.share", "share/shop/db", "share/shop/db"),
        ("net.share", NO_TEXT, ""),
        ("net.door", "veth1a2b3c4d", "veth1a2b3c4d"),
    ],
)
def test_rates_and_texts_of_links_and_disks_are_read(knob: str, text: str, value: float | str) -> None:
    assert parse_value(knob, text) == value


@pytest.mark.parametrize(
    ("knob", "text", "problem"),
    [
        ("io.max.wbps", "50Mbit", "bits a second are a value of the network alone"),
        ("cpu.max", "500kbit", "bits a second are a value of the network alone"),
        ("net.egress.ceil", "100Mb", "unknown suffix"),
        ("net.egress.ceil", "1e99bit", "not a quantity"),
        ("net.egress.ceil", "1kbit", "takes 8000 to max, in bits/s"),
        ("net.egress.priority", "8", "takes 0 to 7"),
        ("net.share", "shop/db", "takes share/NAMESPACE/NAME"),
        ("net.door", "share/shop/db", "takes the name of a link"),
        ("io.cost.model", "ctrl=user; rm -rf", "takes key=value pairs"),
    ],
)
def test_what_is_no_value_of_a_link_or_a_disk_is_refused(knob: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_value(knob, text)
