"""What people type and what they mean: typos, short names, `KIND/NAME` and `a,b`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from j10ce.cli.main import COMMANDS, ELSEWHERE, cli
from j10ce.cli.meant import kinds_and_names
from j10ce.errors import Conflict, Invalid, NotFound

PROFILES = [{"kind": "QoSProfile", "metadata": {"name": name}, "spec": {"tier": "standard"}} for name in ("ls", "own")]
WORKLOADS = [
    {"kind": "Workload", "metadata": {"name": "web", "namespace": space}, "status": {"profile": "own"}}
    for space in ("default", "shop")
] + [{"kind": "Workload", "metadata": {"name": "db", "namespace": "shop"}, "status": {"profile": "own"}}]


def answer(self: object, method: str, path: str, body: object = None, *, query: object = None) -> Any:
    """A host with two profiles and three workloads."""
    *_, kind, name = ("", *path.split("/"))
    for plural, items in (("qosprofiles", PROFILES), ("workloads", WORKLOADS)):
        if name == plural:
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if kind == plural:
            for item in items:
                space = item["metadata"].get("namespace")  # type: ignore[attr-defined]
                if item["metadata"]["name"] == name and (space is None or f"/{space}/" in path):  # type: ignore[index]
                    return item
    raise NotFound(f"there is no {kind}/{name}")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("j10ce.cli.client.Client.call", answer)
    monkeypatch.setattr(
        "j10ce.cli.peers.Peers.account",
        lambda self: type("A", (), {"server": "http://x", "token": "", "ca": "", "certificate": None}),
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("statu", "status"), ("appyl", "apply"), ("ps", "get workloads"), ("version", "--version"), ("stats", "top")],
)
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(typed: str, meant: str) -> None:
    result = CliRunner().invoke(cli, [typed])
    assert f"No such command '{typed}'; did you mean `j10ce-qos {meant}`?" in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prove", "cpuu"], "'cpuu': did you mean cpu? use one of cpu, wakers, forkers"),
        (["doctor", "netwrk"], "'netwrk': did you mean network? use one of cpu, memory, network, disk"),
        (["get", "wl", "-o", "jsn"], "'jsn': did you mean json? use one of table, wide, json, yaml"),
        (["prove", "--rounds", "x"], "'x' is not a valid number; write a whole number from 1 to 99"),
        (["prove", "--seconds", "0"], "0.0 is not in the range 1<=x<=60; write a number from 1 to 60"),
    ],
)
def test_a_word_or_number_that_is_not_taken_is_answered_with_what_is(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, words)
    assert message in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize("typed", ["log", "logs"])
def test_who_looks_for_logs_hears_where_they_are(typed: str) -> None:
    assert "agent.log, or in `journalctl -u j10ce-qos-agent`" in CliRunner().invoke(cli, [typed]).output


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ([], "Usage: j10ce-qos [OPTIONS] COMMAND"),
        (["run"], "Usage: j10ce-qos run [OPTIONS] COMMAND..."),
        (["config", "check"], "Usage: j10ce-qos config check"),
    ],
)
def test_help_is_a_command_too(words: list[str], first: str) -> None:
    result = CliRunner().invoke(cli, ["help", *words], prog_name="j10ce-qos")
    assert result.exit_code == 0
    assert result.output.startswith(first)


@pytest.mark.parametrize(
    ("words", "says"),
    [(["rnu"], "did you mean `j10ce-qos run`?"), (["run", "x"], "run has no commands of its own, such as 'x'")],
)
def test_help_for_what_is_no_command_says_so(words: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, ["help", *words], prog_name="j10ce-qos")
    assert says in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize("group", ["rollout", "config", "certs", "token"])
def test_no_sentence_in_a_list_of_commands_is_cut_off(group: str) -> None:
    assert "..." not in CliRunner().invoke(cli, [group, "--help"]).output.partition("Commands:")[2]


def test_a_word_like_no_command_is_answered_with_where_they_are_listed() -> None:
    assert "No such command 'xyzzy'; `j10ce-qos --help` lists them." in CliRunner().invoke(cli, ["xyzzy"]).output


def test_words_of_other_tools_lead_to_commands_that_there_are() -> None:
    assert {meant.split()[0] for meant in ELSEWHERE.values()} <= {*COMMANDS, "--version"}
    assert not ELSEWHERE.keys() & COMMANDS.keys()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["wl"], [("Workload", "")]),
        (["wl", "a", "b"], [("Workload", "a"), ("Workload", "b")]),
        (["mrp/web", "node/n1"], [("MinimalReservationPolicy", "web"), ("NodeQoS", "n1")]),
        (["mrp", "payments/db"], [("MinimalReservationPolicy", "payments/db")]),
        (["mrp/payments/db"], [("MinimalReservationPolicy", "payments/db")]),
        (["qp,wl"], [("QoSProfile", ""), ("Workload", "")]),
    ],
)
def test_kinds_and_names_are_understood_as_kubectl_does(words: list[str], meant: list[tuple[str, str]]) -> None:
    assert [(kind.name, name) for kind, name in kinds_and_names(words)] == meant


@pytest.mark.parametrize(
    ("typed", "meant"), [("profiles", "qosprofiles"), ("workload.s", "workloads"), ("pods", "workloads")]
)
def test_a_mistyped_kind_is_answered_with_the_one_that_was_meant_and_all_short_names(typed: str, meant: str) -> None:
    with pytest.raises(Invalid) as refused:
        kinds_and_names([typed])
    assert f"did you mean {meant}?" in str(refused.value)
    assert "minimalreservationpolicies (mrp), nodestrategies (nst), nodeqoses (nq, node, nodes)" in str(refused.value)


def test_get_alone_names_the_kinds() -> None:
    result = CliRunner().invoke(cli, ["get"])
    assert "name a kind, one of qosprofiles (qp, qos), " in result.output
    assert result.exit_code == 2


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["get", "wl", "wbe"], "did you mean web?"),
        (["get", "qp", "lss"], "did you mean ls?"),
        (["get", "wl", "db"], "there is shop/db"),
        (["describe", "qp/onw"], "did you mean own?"),
        (["delete", "--force", "qp", "onw"], "did you mean own?"),
        (["explain", "wbe"], "did you mean web?"),
        (["explain", "workload/default/wbe"], "did you mean web?"),
        (["forget", "db"], "there is shop/db"),
    ],
    ids=" ".join,
)
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(words: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(result.exception, NotFound)
    assert says in str(result.exception)


@pytest.mark.usefixtures("host")
def test_several_kinds_are_listed_one_after_the_other() -> None:
    listed = CliRunner().invoke(cli, ["get", "qp,wl"]).output
    assert listed.index("own") < listed.index("\n\nNAMESPACE") < listed.index("shop")
    items = json.loads(CliRunner().invoke(cli, ["get", "qp,wl", "-o", "json"]).output)["items"]
    assert [o["kind"] for o in items] == ["QoSProfile"] * 2 + ["Workload"] * 3


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("own", "own is in use by default/web, shop/web, shop/db, and would not apply to them any more; --force"),
        ("ls", "ls is built in: nobody could choose it until the manager makes it again at its next start; --force"),
    ],
)
def test_a_profile_that_is_used_or_built_in_is_not_deleted_by_one_word(profile: str, says: str) -> None:
    result = CliRunner().invoke(cli, ["delete", "qp", profile], standalone_mode=False)
    assert isinstance(result.exception, Conflict)
    assert says in str(result.exception)
    assert "deleted" in CliRunner().invoke(cli, ["delete", "--force", "qp", profile]).output
