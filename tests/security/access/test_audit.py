"""The audit log tells every write and every refusal, keeps secrets out, and stands in nobody's way."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.http.status import Refusal
from j10ce.manager.access.audit import MOST_BYTES, Audit, difference
from j10ce.manager.access.tokens import make
from j10ce.manager.identity import SYSTEM, Act, Caller, Role
from j10ce.model.kinds import Credential, CredentialSpec, Meta
from j10ce.model.schema import plain
from j10ce.testing.build import WALL, profile
from tests.model.generate import objects
from tests.security.plane import BASE, Plane, obj

EDITOR = Caller("alice", Role.EDITOR)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=10,
)


def act(verb: Any = "update", kind: str = "QoSProfile", caller: Caller = EDITOR, part: str = "spec") -> Act:
    made = Act(caller, "192.0.2.1")
    made.verb, made.kind, made.name, made.part = verb, kind, "x", part
    return made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_who_what_when_and_what_it_was_before(tmp_path: Path) -> None:
    old = profile("x")
    made = act()
    made.before, made.after = old, replace(old, spec=replace(old.spec, priority=7))
    Audit(tmp_path / "log", lambda: WALL).record(made, 200, method="PUT", path="/p")
    (line,) = lines(tmp_path / "log")
    when = line.pop("when")
    assert when.endswith("+00:00")
    assert line == {
        "who": "alice",
        "role": "editor",
        "source": "192.0.2.1",
        "verb": "update",
        "kind": "QoSProfile",
        "name": "x",
        "code": 200,
        "before": {"spec": {"priority": 0}} if "priority" in plain(old)["spec"] else None,
        "after": {"spec": {"priority": 7}},
        "method": "PUT",
        "path": "/p",
    }


@pytest.mark.parametrize(
    ("made", "code", "written"),
    [
        pytest.param(act("create"), 201, True, id="a write"),
        pytest.param(act("delete"), 409, True, id="a write that failed"),
        pytest.param(act("get"), 200, False, id="a read"),
        pytest.param(act("list"), 403, True, id="a read that was refused"),
        pytest.param(act("get"), 404, False, id="a read of nothing"),
        pytest.param(Act(source="192.0.2.1"), 401, True, id="a stranger"),
        pytest.param(Act(source="192.0.2.1"), 429, False, id="a flood of strangers"),
        pytest.param(act("update", "NodeQoS", Caller("n", Role.NODE, "n"), "status"), 200, False, id="a report"),
        pytest.param(act("update", "NodeQoS", Caller("n", Role.NODE, "n"), "status"), 403, True, id="for another"),
        pytest.param(act("update", "NodeQoS", EDITOR, "status"), 200, True, id="a status by hand"),
    ],
)
def test_writes_and_refusals_are_reported(tmp_path: Path, made: Act, code: int, written: bool) -> None:
    Audit(tmp_path / "log", lambda: WALL).record(made, code)
    assert (tmp_path / "log").exists() == written


def test_a_credential_is_shown_without_its_hashes(tmp_path: Path) -> None:
    token, hash_ = make("bob")
    made = act("create", "Credential")
    pasted = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"hash":"{hash_}","token":"{token}"}}'}
    spec = CredentialSpec(role="viewer", hash=hash_)
    made.after = Credential(metadata=Meta(name="bob", annotations=pasted), spec=spec)
    Audit(tmp_path / "log", lambda: WALL).record(made, 201, f"pasted {token}")
    text = (tmp_path / "log").read_text()
    assert hash_ not in text
    assert token.rpartition(".")[2] not in text
    assert json.loads(text)["after"]["spec"] == {"role": "viewer", "hash": "(redacted)"}


@given(old=st.none() | objects(), new=st.none() | objects())
@settings(max_examples=30)
def test_any_change_is_one_line_of_bounded_length(tmp_path_factory: pytest.TempPathFactory, old: Any, new: Any) -> None:
    path = tmp_path_factory.mktemp("audit") / "log"
    made = act()
    made.before, made.after = old, new
    Audit(path, lambda: WALL).record(made, 200)
    assert len(lines(path)) == 1
    assert path.stat().st_size <= MOST_BYTES + 1


def test_a_long_text_is_shortened_in_its_line(tmp_path: Path) -> None:
    made, big = act("create"), profile("x")
    made.after = replace(big, metadata=replace(big.metadata, annotations={"a": "x" * MOST_BYTES, "b": "short"}))
    Audit(tmp_path / "log", lambda: WALL).record(made, 201)
    (line,) = lines(tmp_path / "log")
    assert line["cut"] > MOST_BYTES
    shown = line["after"]["metadata"]["annotations"]
    assert shown == {"a": "x" * 200 + f"… ({MOST_BYTES} characters)", "b": "short"}


def test_a_change_that_is_huge_however_short_its_texts_keeps_its_head(tmp_path: Path) -> None:
    made, big = act("create"), profile("x")
    many = {f"key-{n}": "x" * 100 for n in range(1000)}
    made.after = replace(big, metadata=replace(big.metadata, annotations=many))
    Audit(tmp_path / "log", lambda: WALL).record(made, 201)
    (line,) = lines(tmp_path / "log")
    assert line["cut"] > MOST_BYTES
    assert (line["who"], line["name"], line["code"]) == ("alice", "x", 201)
    assert not line.get("after")


def test_whatever_an_object_holds_its_line_is_written(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"f:a": deep}
    made, odd = act("create"), profile("x")
    made.after = replace(odd, metadata=replace(odd.metadata, annotations=deep))
    audit = Audit(tmp_path / "log", lambda: WALL)
    audit.record(made, 201)
    (line,) = lines(tmp_path / "log")
    assert (line["who"], line["verb"], line["name"], line["code"]) == ("alice", "create", "x", 201)
    assert audit.lost == 0


def test_a_write_is_reported_before_it_is_done_and_after(tmp_path: Path) -> None:
    audit, made = Audit(tmp_path / "log", lambda: WALL), act("create")
    audit.intend(made)
    (intent,) = lines(tmp_path / "log")
    assert (intent["stage"], intent["who"], intent["verb"], intent["name"]) == ("intent", "alice", "create", "x")
    audit.record(made, 201)
    _, outcome = lines(tmp_path / "log")
    assert (outcome["stage"], outcome["code"], outcome["id"]) == ("outcome", 201, intent["id"])


@given(old=JSON, new=JSON)
def test_a_difference_shows_what_changed_and_nothing_that_stayed(old: Any, new: Any) -> None:
    before, after = difference(old, new)
    assert (before, after) != (None, None) or said(old) == said(new)
    if isinstance(old, dict) and isinstance(new, dict):
        moved = {key for key in {**old, **new} if old.get(key) != new.get(key)}
        assert {**(before or {}), **(after or {})}.keys() <= moved


@given(JSON)
def test_what_did_not_change_has_no_difference(same: Any) -> None:
    assert difference(same, same) == (None, None)


def said(value: Any) -> Any:
    """A key with null says as much as no key."""
    if not isinstance(value, dict):
        return value
    return {k: said(v) for k, v in value.items() if said(v) not in (None, {})} or None


def test_the_file_is_its_owners_and_follows_its_name(tmp_path: Path) -> None:
    path = tmp_path / "log"
    audit = Audit(path, lambda: WALL)
    audit.record(act(), 200)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(tmp_path / "log.1")
    audit.record(act(), 200)
    audit.record(act(), 200)
    assert (len(lines(tmp_path / "log.1")), len(lines(path))) == (1, 2)
    path.unlink()
    audit.record(act(), 200)
    assert len(lines(path)) == 1
    audit.close()
    audit.record(act(), 200)
    assert len(lines(path)) == 2


@pytest.mark.parametrize("place", ["/dev/full", "/nowhere/log", "/proc/self/mem"])
def test_a_write_that_cannot_be_recorded_is_refused(place: str) -> None:
    audit = Audit(Path(place), lambda: WALL)
    with pytest.raises(Refusal, match="audit log cannot be written, so nothing was changed"):
        audit.intend(act("create"))


def test_a_refusal_that_cannot_be_recorded_is_counted_and_stops_nothing() -> None:
    audit = Audit(Path("/dev/full"), lambda: WALL)
    for _ in range(3):
        audit.record(act(), 403)
    assert audit.lost == 3


def test_a_pipe_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with pytest.raises(Refusal):
        Audit(tmp_path / "log", lambda: WALL).intend(act())


@pytest.mark.parametrize(
    ("caller", "verb"),
    [
        pytest.param(Caller("root", Role.ADMIN), "delete", id="an administrator's delete"),
        pytest.param(SYSTEM, "update", id="the leader's own write"),
        pytest.param(SYSTEM, "delete", id="the leader's own delete"),
    ],
)
def test_what_mends_things_goes_on_and_is_reported_first_when_the_log_works_again(
    tmp_path: Path, caller: Caller, verb: str
) -> None:
    folder = tmp_path / "later"
    audit = Audit(folder / "log", lambda: WALL)
    kept, later = act(verb, caller=caller), act("create")
    audit.intend(kept)
    audit.record(kept, 200)
    folder.mkdir()
    audit.intend(later)
    audit.record(later, 201)
    recorded = [(line["verb"], line["stage"]) for line in lines(folder / "log")]
    assert recorded == [(verb, "intent"), (verb, "outcome"), ("create", "intent"), ("create", "outcome")]
    assert audit.lost == 0


def test_an_administrator_cannot_create_what_nobody_hears_of() -> None:
    with pytest.raises(Refusal):
        Audit(Path("/dev/full"), lambda: WALL).intend(act("create", caller=Caller("root", Role.ADMIN)))


def test_what_waits_for_the_log_is_bounded() -> None:
    audit = Audit(Path("/dev/full"), lambda: WALL)
    for _ in range(3000):
        gone = act("delete", caller=SYSTEM)
        gone.name = "x" * 500
        audit.intend(gone)
    assert sum(map(len, audit._waiting)) <= 1 << 20
    assert audit.lost == 3000 - len(audit._waiting)


def test_a_full_disk_under_a_running_manager_refuses_writes_and_lets_an_administrator_delete(plane: Plane) -> None:
    with plane.manager() as manager, manager.client("editor") as editor, manager.client("admin") as admin:
        assert editor.post(f"{BASE}/qosprofiles", json=obj("QoSProfile", "first", tier="standard")).status_code == 201
        plane.audit.unlink()
        plane.audit.symlink_to("/dev/full")  # never followed: as good as a log that cannot be opened
        refused = editor.post(f"{BASE}/qosprofiles", json=obj("QoSProfile", "second", tier="standard"))
        assert refused.status_code == 503
        assert "nothing was changed" in refused.json()["message"]
        assert admin.get(f"{BASE}/qosprofiles/second").status_code == 404
        assert editor.delete(f"{BASE}/qosprofiles/first").status_code == 503
        assert admin.delete(f"{BASE}/qosprofiles/first").status_code == 200
        plane.audit.unlink()
        assert editor.post(f"{BASE}/qosprofiles", json=obj("QoSProfile", "third", tier="standard")).status_code == 201
    by_people = [line for line in plane.audited() if line["who"] != "system"]
    assert [(line["verb"], line["name"], line.get("stage")) for line in by_people] == [
        ("delete", "first", "intent"),
        ("delete", "first", "outcome"),
        ("create", "third", "intent"),
        ("create", "third", "outcome"),
    ]


def test_what_the_leader_does_by_itself_is_reported(plane: Plane) -> None:
    with plane.manager():
        pass
    made = [line for line in plane.audited() if line["who"] == "system" and line.get("code") == 200]
    assert ("create", "QoSProfile", "lse") in {(line["verb"], line["kind"], line["name"]) for line in made}


def test_without_a_file_nothing_is_reported() -> None:
    audit = Audit(None, lambda: WALL)
    audit.record(act(), 200)
    assert audit.lost == 0
