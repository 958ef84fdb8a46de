"""Every field of every kind says what it means."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from j10ce.manager.openapi import shape
from j10ce.manager.openapi.fields import FIELDS, described

STRUCTS = [pytest.param(struct, id=struct.__name__) for struct in shape.messages()]


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_described(struct: type[Struct]) -> None:
    assert described(struct), f"say in manager/openapi/fields.py what a {struct.__name__} is"
    names = [field.name for field in msgspec.structs.fields(struct) if field.name not in ("api_version", "kind")]
    assert not [name for name in names if not described(struct, name)], (
        "say in manager/openapi/fields.py what they mean"
    )


def test_nothing_is_described_that_is_not_there() -> None:
    structs = {cls.__name__: cls for struct in shape.messages() for cls in struct.__mro__}
    assert not [name for name in FIELDS if name not in structs]
    for name, texts in FIELDS.items():
        assert set(texts) <= {"", *structs[name].__struct_fields__}, name


def test_a_description_is_a_sentence() -> None:
    assert not [text for texts in FIELDS.values() for text in texts.values() if not text.endswith((".", "…"))]
