"""The auth file is read strictly, kept private, and never repeats what was written into the wrong place."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from j10ce.errors import Denied, Invalid
from j10ce.manager.access import token_file
from j10ce.manager.access.tokens import Keyring, make
from j10ce.store.memory import MemoryStore

TOKEN, HASH = make("alice")
GOOD = {"name": "alice", "role": "editor", "hash": HASH}


def text(*known: dict[str, Any]) -> bytes:
    return yaml.safe_dump({"tokens": list(known)}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(text(GOOD), id="YAML"),
        pytest.param(f'{{"tokens":[{{"name":"alice","role":"editor","hash":"{HASH}"}}]}}'.encode(), id="JSON"),
        pytest.param(text({**GOOD, "expires": "2030-01-01T00:00:00Z"}), id="quoted time"),
        pytest.param(text(GOOD) + b"  expires: 2030-01-01T00:00:00Z\n", id="plain time"),
        pytest.param(text({**GOOD, "role": "node", "node": "n1"}), id="node"),
        pytest.param(text({**GOOD, "role": "bootstrap", "expires": "2030-01-01T00:00:00Z"}), id="bootstrap"),
    ],
)
def test_a_good_file_is_read(raw: bytes) -> None:
    assert [k.name for k in token_file.parse(raw).tokens] == ["alice"]


@pytest.mark.parametrize("raw", [b"", b"# nothing\n", b"{}", b"tokens: []"])
def test_an_empty_file_knows_nobody(raw: bytes) -> None:
    assert token_file.parse(raw).tokens == ()


@pytest.mark.parametrize(
    ("raw", "finding"),
    [
        pytest.param(text({**GOOD, "role": "root"}), "tokens[0].role", id="unknown role"),
        pytest.param(text({**GOOD, "hash": TOKEN}), "tokens[0].hash", id="the token for the hash"),
        pytest.param(text({**GOOD, "token": TOKEN}), "tokens[0].token", id="the token besides"),
        pytest.param(text({**GOOD, "name": "Alice Smith"}), "tokens[0].name", id="no name"),
        pytest.param(text({**GOOD, "role": "node"}), "tokens[0].node", id="a node without a node"),
        pytest.param(text({**GOOD, "node": "n1"}), "tokens[0].node", id="an editor with one"),
        pytest.param(text({**GOOD, "role": "bootstrap"}), "tokens[0].expires", id="bootstrap without an end"),
        pytest.param(text(GOOD, GOOD), "tokens[1].name", id="twice"),
        pytest.param(b"tokens: 5", "tokens", id="no list"),
        pytest.param(b"tokens: [", "", id="no YAML"),
        pytest.param(b"\xff\xfe\x00", "", id="no text"),
        pytest.param(b"a: 2020-99-99", "", id="no date"),
        pytest.param(b"[" * 2000, "", id="too deep"),
        pytest.param(b"? {a: b}\n: c", "", id="an unhashable key"),
        pytest.param(b"!!python/object/apply:os.system [true]", "", id="a Python object"),
        pytest.param(b" " * (token_file.MOST_BYTES + 1), "", id="too large"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_without_secrets(raw: bytes, finding: str) -> None:
    with pytest.raises(Invalid) as refused:
        token_file.parse(raw)
    assert finding in [f.path for f in refused.value.findings]
    assert TOKEN.rpartition(".")[2] not in str(refused.value)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: f"tokens:\n- {t}".encode())))
@example(b"tokens:\n- =")
@example(b"*a")
@example(b"<<: 1")
@example(b"\x85")
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with suppress(Invalid):
        assert all(known.name and known.hash for known in token_file.parse(raw).tokens)


@pytest.mark.parametrize(
    ("mode", "good"), [(0o600, True), (0o400, True), (0o640, True), (0o644, False), (0o620, False)]
)
def test_others_can_neither_read_nor_write_it(tmp_path: Path, mode: int, good: bool) -> None:
    path = tmp_path / "auth.yaml"
    path.write_bytes(text(GOOD))
    path.chmod(mode)
    if good:
        assert token_file.load(path).tokens
    else:
        with pytest.raises(Denied, match=f"{mode:04o}"):
            token_file.load(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="No such file"):
        token_file.load(tmp_path / "auth.yaml")


def test_a_reload_with_a_mistake_keeps_what_was_in_force(tmp_path: Path) -> None:
    path, keyring = tmp_path / "auth.yaml", Keyring(MemoryStore(lambda: 0.0), lambda: 0.0)
    path.write_bytes(text(GOOD))
    path.chmod(0o600)
    token_file.reload(keyring, path)
    assert keyring.recognise(TOKEN.encode()) is not None
    path.write_bytes(b"tokens: [")
    token_file.reload(keyring, path)
    assert keyring.recognise(TOKEN.encode()) is not None
    path.write_bytes(b"tokens: []")
    token_file.reload(keyring, path)
    assert keyring.recognise(TOKEN.encode()) is None
