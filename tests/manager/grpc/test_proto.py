"""The .proto follows the model, keeps its numbers, and is what protobuf people expect."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.descriptor import Descriptor
from msgspec import Struct

from j10ce.manager.grpc.proto import objects_pb2, services_pb2
from j10ce.manager.openapi import shape
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Tier

CLONE = Path(__file__).resolve().parents[3]
PROTO = CLONE / "src/j10ce/manager/grpc/proto"
ETCD = CLONE / "src/j10ce/store/etcd/proto"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_proto", CLONE / "tools/generate_proto.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


class Old(Struct, frozen=True):
    first: str
    second: int = 0
    tier: Tier = Tier.STANDARD


class New(Struct, frozen=True):
    second: int = 0
    fourth: bool = False
    tier: Tier = Tier.STANDARD


class Changed(Struct, frozen=True):
    first: int
    tier: Tier = Tier.STANDARD


def test_the_committed_files_follow_from_the_model(generator: ModuleType) -> None:
    numbers = generator.json.loads(generator.LOCK.read_text())
    folder = PROTO / generator.PACKAGE
    assert (folder / "objects.proto").read_text() == generator.objects(numbers), "run `make generate`"
    assert (folder / "services.proto").read_text() == generator.services(), "run `make generate`"
    assert generator.LOCK.read_text() == generator.spelled(numbers)


@pytest.mark.parametrize("home", ["HOME", "ETCD_HOME"])
def test_the_committed_code_follows_from_the_proto(generator: ModuleType, home: str, tmp_path: Path) -> None:
    package = generator.PACKAGE if home == "HOME" else generator.ETCD_PACKAGE
    made = generator.compiled(getattr(generator, home), package, tmp_path)
    assert made == {file: file.read_text() for file in made}, "run `make generate`"


@pytest.mark.parametrize("struct", [pytest.param(s, id=s.__name__) for s in shape.messages()])
def test_the_compiled_code_has_every_field(struct: type[Struct]) -> None:
    descriptor: Descriptor = getattr(objects_pb2, struct.__name__).DESCRIPTOR
    assert {(f.name, f.json_name) for f in descriptor.fields} == {(f.name, f.key) for f in shape.fields(struct)}
    for field in descriptor.fields:
        assert field.has_presence or field.is_repeated, "unset and zero must differ"


def test_every_stored_kind_has_a_service() -> None:
    names = {f"{kind.name}Service" for kind in KINDS.values() if kind.stored}
    assert set(services_pb2.DESCRIPTOR.services_by_name) == names


def test_a_field_that_went_stays_reserved(generator: ModuleType) -> None:
    numbers: dict[str, dict[str, list[object]]] = {}
    generator.message(Old, numbers)
    numbers["New"] = numbers.pop("Old")
    text = generator.message(New, numbers)
    assert "reserved 1;" in text
    assert 'reserved "first";' in text
    assert "optional int64 second = 2;" in text
    assert "optional bool fourth = 4;" in text


def test_a_field_keeps_its_type(generator: ModuleType) -> None:
    numbers: dict[str, dict[str, list[object]]] = {}
    generator.message(Old, numbers)
    numbers["Changed"] = numbers.pop("Old")
    with pytest.raises(SystemExit, match="give it another name"):
        generator.message(Changed, numbers)


@pytest.mark.parametrize("proto", [pytest.param(PROTO, id="ours"), pytest.param(ETCD, id="etcd's")])
def test_buf_finds_nothing_to_say(proto: Path, tmp_path: Path) -> None:
    buf = Path(sys.executable).with_name("buf")
    env = {**os.environ, "BUF_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    said = subprocess.run([buf, "lint"], cwd=proto, env=env, capture_output=True, text=True, timeout=60)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
