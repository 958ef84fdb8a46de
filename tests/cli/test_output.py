import json
import re
from itertools import product as pairs
from pathlib import Path

import pytest
import yaml

from j10ce.cli.fleet.describe import describe
from j10ce.cli.fleet.nodes import describe_node
from j10ce.cli.host.bundle import fresh
from j10ce.cli.look.live import END_OF_LINE, END_OF_SCREEN, HOME, Live
from j10ce.cli.output import progress, report, say, show_objects, table
from j10ce.errors import Finding, Invalid, QosError
from j10ce.model.catalogue import KINDS
from j10ce.model.text.secrets import redact
from tests.style.sources import dotted, product

LS = {"metadata": {"name": "ls"}, "spec": {"tier": "sensitive", "priority": 0, "cpu": {"pinning": "shared"}}}


def test_columns_line_up_and_empty_cells_show() -> None:
    assert table(["A", "LONG"], [["x", None], ["yyy", True]]) == "A     LONG\nx     -\nyyy   yes"


def test_wide_shows_more_than_table() -> None:
    kind = KINDS["QoSProfile"]
    narrow, wide = (show_objects(kind, [LS], style).splitlines()[0].split() for style in ("table", "wide"))
    assert narrow == ["NAME", "TIER", "PRIORITY", "READY", "AGE"]
    assert wide == ["NAME", "TIER", "PRIORITY", "READY", "REASON", "PINNING", "IDLE", "NODES", "FAILING", "AGE"]


WEB = {
    "metadata": {"name": "web", "namespace": "default"},
    "status": {
        "phase": "Running",
        "floor": {"cpu": "500m", "memory": "256Mi"},
        "usage": {"cpu": "25m", "memory": "12764Ki"},
        "effective": [
            {"resource": "cpu", "promised": "500m", "effective": "500m"},
            {"resource": "memory", "promised": "256Mi", "effective": "0", "reason": "no memory.min"},
        ],
    },
}


def test_a_floor_that_is_not_effective_shows_beside_what_was_promised() -> None:
    assert show_objects(KINDS["Workload"], [WEB], "table").splitlines()[1].split()[-2:] == ["500m", "0/256Mi"]


def test_floors_of_disks_stand_beside_what_is_used_of_them_in_the_wide_listing() -> None:
    judged = [{"resource": "diskRead", "promised": "50Mi", "effective": "0", "reason": "not measured"}]
    status = {"floor": {"diskRead": "50Mi"}, "usage": {"diskRead": "20Mi"}, "effective": judged}
    head, row = show_objects(KINDS["Workload"], [{**WEB, "status": status}], "wide").splitlines()[:2]
    at = head.index("DISK-READ")
    assert row[at:].split()[:4] == ["20Mi", "0/50Mi", "-", "-"]


def test_amounts_are_shown_as_people_read_them_and_kept_exact_for_machines() -> None:
    assert "   25m   12.46Mi   " in show_objects(KINDS["Workload"], [WEB], "table")
    assert "12764Ki" in show_objects(KINDS["Workload"], [WEB], "yaml")
    node = {"metadata": {"name": "n1"}, "status": {"overcommit": {"batch-memory": "15164876389"}}}
    assert "   14.12Gi   " in show_objects(KINDS["NodeQoS"], [node], "wide")
    share = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"minimum": {"cpu": "25%"}}}
    assert "   25%   " in show_objects(KINDS["MinimalReservationPolicy"], [share], "table")


def test_the_age_of_a_workload_is_in_the_wide_listing() -> None:
    """The plain one fits 80 columns without it."""
    narrow, wide = (show_objects(KINDS["Workload"], [WEB], style).splitlines()[0] for style in ("table", "wide"))
    assert "AGE" not in narrow
    assert wide.endswith("   AGE")


def test_the_age_of_an_object_is_shown() -> None:
    old = {**LS, "metadata": {"name": "ls", "creationTimestamp": "2020-01-01T00:00:00Z"}}
    assert re.search(r"   \d+y(\d+d)?$", show_objects(KINDS["QoSProfile"], [old], "table"))


@pytest.mark.parametrize(("style", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_machine_formats_carry_the_whole_objects(style: str, read: object) -> None:
    assert read(show_objects(KINDS["QoSProfile"], [LS], style))["items"] == [LS]  # type: ignore[operator]


SECRET = "abc123+/xyz"
LEAKS = [
    f"Authorization: Bearer {SECRET}", f"Authorization: Basic {SECRET}", f'"Authorization": "Basic {SECRET}"',
    f'token: "{SECRET}"', f"--password={SECRET}", f"--token {SECRET} --listen x", f'{{"secret": "{SECRET}"}}',
    f"api_key={SECRET}", f"credential: {SECRET}", f"passphrase: {SECRET}", f"password: correct horse {SECRET}",
    f'password: "correct \\" horse {SECRET}"', f"token secret: {SECRET}", f"db: postgres://user:{SECRET}@db/x",
    f"password: |\n  correct\n  {SECRET}\nnext: 1", f"private_key = '{SECRET}'", f"bearer {SECRET}",
    f"client-key-data: {SECRET}", f"tokens:\n- {SECRET}\n- {SECRET}\nnext: 1", f'{{"tokens": ["a", "{SECRET}"]}}',
    f"PASSWORD {SECRET}", f"mysql://u:p@{SECRET}@w/d@h", f"machine h login u password {SECRET}",
    f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----", f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
]  # fmt: skip


@pytest.mark.parametrize("text", LEAKS)
def test_a_bundle_carries_no_secret(text: str) -> None:
    assert "abc123" not in redact(text)
    assert "xyz" not in redact(text)
    assert "(removed)" in redact(text)


@pytest.mark.parametrize(
    "text", ['{"token": {', "level=info event=start", "kind: Credential", "next: 1", "tokens", "tokens:\n- name: n1\n"]
)
def test_a_bundle_keeps_what_is_no_secret(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("before", "length"), [*pairs(["", "a ", "=", "a-", "--"], [20, 400]), ("", 5_000), ("a ", 5_000), ("=", 5_000)]
)
def test_a_bundle_carries_no_token_of_a_service_account(before: str, length: int) -> None:
    redacted = redact(f"{before}eyJ{'h' * length}.{'p' * 30}.signature end")
    assert redacted == f"{before}(removed) end"


LONG = [
    "token" + " " * 500_000 + '"', "token" * 200_000, "--" * 500_000, "-" * 10**6, "://" + "a" * 10**6, "://" * 300_000,
    "://a:" * 200_000, "eyJ-" * 300_000, "eyJaaaaaaaa-" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_text_that_a_caller_wrote_into_a_log_does_not_keep_a_bundle_from_its_end(text: str) -> None:
    assert redact(text)


def test_a_bundle_goes_into_a_file_of_its_own_where_someone_else_has_made_one(tmp_path: Path) -> None:
    output = tmp_path / "bundle.tgz"
    output.touch()
    output.chmod(0o666)
    with output.open("rb") as theirs:
        with fresh(output) as ours:
            ours.write(b"all that a bug report needs")
        assert theirs.read() == b""
    assert output.stat().st_mode & 0o777 == 0o600
    assert output.read_bytes() == b"all that a bug report needs"


def test_a_bundle_in_a_folder_that_is_gone_says_which_file_could_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with (
        pytest.raises(QosError, match=r"^bundle\.tgz: No such file or directory; .*--output"),
        fresh(Path("bundle.tgz")),
    ):
        pass
    monkeypatch.chdir(tmp_path)


def test_a_bundle_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), fresh(tmp_path / "bundle.tgz"):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


# What a terminal would obey: clear the screen, a title, another direction of writing, a line of its own.
HOSTILE = "\x1b[2J\x1b]0;pwned\x07\u202eALL WELL\r\n\x9b1mx\ud800"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile_objects() -> dict[str, str]:
    meta = {"name": "n1", "namespace": "default", "labels": {"a": HOSTILE}}
    hold = {"metadata": meta, "spec": {"target": HOSTILE, "knobs": [HOSTILE], "why": HOSTILE, "who": HOSTILE}}
    fields = {"agentVersion": HOSTILE, "conditions": [{"type": "Ready", "status": "True", "message": HOSTILE}]}
    node = {"metadata": meta, "spec": {}, "status": {"node": fields}}
    return {
        "get": show_objects(KINDS["Hold"], [hold], "table"),
        "wide": show_objects(KINDS["Hold"], [hold], "wide"),
        "describe": describe(KINDS["Hold"], hold),
        "describe node": describe_node(node),
        "json": show_objects(KINDS["Hold"], [hold], "json"),
        "yaml": show_objects(KINDS["Hold"], [hold], "yaml"),
    }


@pytest.mark.parametrize("how", hostile_objects())
def test_what_others_wrote_reaches_no_terminal_as_it_is(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(hostile_objects()[how])
    output = capsys.readouterr().out
    assert not OBEYED.search(output)
    assert "pwned" in output


@pytest.mark.parametrize("how", ["get", "wide"])
def test_one_object_is_one_line(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(hostile_objects()[how])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_errors_of_a_server_reach_no_terminal_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    report(QosError(HOSTILE))
    report(Invalid([Finding(HOSTILE, HOSTILE, HOSTILE), Finding(HOSTILE, None, HOSTILE)], HOSTILE))
    output = capsys.readouterr().err
    assert not OBEYED.search(output)
    assert [line[:8] for line in output.splitlines()] == ["error: \\", "error: i", "  \\u001b", "  \\u001b"]


def test_a_live_screen_obeys_nothing_of_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    object.__new__(Live).show(HOSTILE)
    text = capsys.readouterr().out
    for ours in (HOME, END_OF_LINE, END_OF_SCREEN):
        text = text.replace(ours, "")
    assert not OBEYED.search(text)


def test_only_what_makes_text_harmless_prints() -> None:
    printing = {
        source.module
        for source in product()
        for call in source.calls()
        if source.module.startswith("cli/") and dotted(call.func) in ("print", "click.echo", "sys.stdout.write")
    }
    assert printing == {"cli/output.py", "cli/look/live.py"}


def test_progress_off_a_terminal_is_one_line_that_says_where_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    for share in (10, 50, 100):
        progress(f"\x1b]0;seed 1\a: {share}%", last=share == 100)
    text = capsys.readouterr().err
    assert not OBEYED.search(text)
    assert len(text.splitlines()) == 1
    assert "100%" in text
