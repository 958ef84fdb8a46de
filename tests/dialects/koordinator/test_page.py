"""docs/koordinator.md says what the code does: every field with its default, every annotation, every band and class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.classes import BANDS, PROFILES
from j10ce.dialects.koordinator.config.keys import SHAPES, walk
from j10ce.dialects.koordinator.config.qos import DEFAULTS, IoConfig
from tests.koordinator.theirs.defaults import NEUTRAL

PAGE = (Path(__file__).parents[3] / "docs/koordinator.md").read_text()
EXTENDED = {names.BATCH_CPU, names.BATCH_MEMORY, names.MID_CPU, names.MID_MEMORY}
COLUMNS = ("lsrClass", "lsClass", "beClass", "systemClass")


def spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("key", [key for key in SHAPES if key != "resource-qos-config"])
def test_every_field_stands_there_with_its_default(key: str) -> None:
    section = PAGE.partition(f"### `{key}`")[2].partition("\n##")[0]
    shape = SHAPES[key]
    assert shape.struct is not None
    defaults = dict(walk(shape.defaults))
    assert all(f"| `{field}` | `{spelled(value)}` |" in section for field, value in defaults.items())
    fields = [*shape.struct.__struct_encode_fields__]
    assert [field for field in fields if f"`{field}" not in section] == []


@pytest.mark.parametrize("block", ["cpuQOS", "memoryQOS", "resctrlQOS"])
def test_every_class_stands_there_with_its_defaults(block: str) -> None:
    for field, off in NEUTRAL[block].items():
        values = [*(DEFAULTS[name][block][field] for name in COLUMNS), off]
        row = f"| `{block}.{field}` | {' | '.join(json.dumps(value) for value in values)} |"
        assert field == "enable" or row in PAGE


def test_every_field_of_disks_stands_there() -> None:
    assert [field for field in IoConfig.__struct_encode_fields__ if f"`{field}`" not in PAGE] == []


def test_every_annotation_and_feature_stands_there() -> None:
    words = [value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)]
    short = [word for word in words if word.rpartition("/")[2] not in PAGE]
    assert {*short} <= EXTENDED  # the page has them as batch-* and mid-*
    assert all(f"`{evictor}`" in PAGE for evictor in names.EVICTORS)


def test_every_band_and_class_stands_there() -> None:
    for band, held in BANDS.items():
        first, last = held.priorities[0], held.priorities[-1]
        assert f"| `{band.value}` | {first} to {last} | {held.default} | {held.installed} |" in PAGE
    for koord, ours in PROFILES.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{koord.value}` |"))
        assert row.endswith(f"| `{ours.profile}` | {ours.tier.value} |")
