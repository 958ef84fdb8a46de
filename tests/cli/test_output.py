import json

import pytest
import yaml

from j10ce.cli.bundle import redact
from j10ce.cli.output import show_objects, table
from j10ce.model.catalogue import KINDS

LS = {"metadata": {"name": "ls"}, "spec": {"tier": "sensitive", "priority": 0, "cpu": {"pinning": "shared"}}}


def test_columns_line_up_and_empty_cells_show() -> None:
    assert table(["A", "LONG"], [["x", None], ["yyy", True]]) == "A     LONG\nx     -\nyyy   yes"


def test_wide_shows_more_than_table() -> None:
    kind = KINDS["QoSProfile"]
    narrow, wide = (show_objects(kind, [LS], style).splitlines()[0].split() for style in ("table", "wide"))
    assert narrow == ["NAME", "TIER", "PRIORITY"]
    assert wide == ["NAME", "TIER", "PRIORITY", "PINNING", "IDLE", "NODES", "FAILING"]


@pytest.mark.parametrize(("style", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_machine_formats_carry_the_whole_objects(style: str, read: object) -> None:
    assert read(show_objects(KINDS["QoSProfile"], [LS], style))["items"] == [LS]  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    ["Authorization: Bearer abc123", 'token: "abc123"', "--password=abc123", '{"secret": "abc123"}', "api_key=abc123"],
)
def test_a_bundle_carries_no_secret(text: str) -> None:
    assert "abc123" not in redact(text)
    assert "(removed)" in redact(text)
