"""The page on security shows the rights and the limits as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from j10ce import errors
from j10ce.agent.ring import what_if
from j10ce.agent.socket import holding
from j10ce.http import server as socket_server
from j10ce.manager import connection
from j10ce.manager.access import audit, token_file
from j10ce.manager.access.roles import KINDS_ASKED, RIGHTS
from j10ce.manager.api import query
from j10ce.manager.asgi import requests
from j10ce.manager.changes import plain_yaml
from j10ce.manager.documents import size
from j10ce.manager.fairness import crowd, desks, growth, large, rate_limits
from j10ce.manager.fairness.rate_limits import DOCUMENTS, PEOPLE, REPORTS, Share
from j10ce.manager.grpc import codec, health, visit
from j10ce.manager.identity import READS, WRITES, Role
from j10ce.model import bounds, knob
from j10ce.policy.validation import validate
from tests.docs.pages import CLONE, blocks

PAGE = (CLONE / "docs/security.md").read_text()
KIB, MIB = 1024, 1024 * 1024
CLASSES = (REPORTS, DOCUMENTS, PEOPLE)


def table() -> str:
    heads = ["what", *(role.value for role in Role)]
    rows = [[f"`{kind}`", *(cell(role, kind) for role in Role)] for kind in KINDS_ASKED]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def cell(role: Role, kind: str) -> str:
    rights = RIGHTS[role]
    reads = [v for v in READS if (kind, v, "spec") in rights]
    writes = [v for v in WRITES if (kind, v, "spec") in rights]
    status = [v for v in WRITES if (kind, v, "status") in rights and v not in writes]
    words = ["read"] if len(reads) == len(READS) else reads
    words += ["write"] if len(writes) == len(WRITES) else writes
    words += [f"{v} status" for v in status]
    own = any(mine for (k, _, _), mine in rights.items() if k == kind)
    return (", ".join(words) + (" of its own" if own else "")) or "–"


def test_the_table_of_rights_is_the_one_in_force() -> None:
    assert table() in PAGE


def amount(number: float) -> str:
    """Bytes as the page has them."""
    if number >= MIB or number % KIB:
        return f"{number / MIB:g} MiB" if number >= MIB else f"{number:g}"
    return f"{number / KIB:g} KiB" if number else "–"


def saved(rate: float, burst: float) -> str:
    return f"{amount(rate)} ({amount(burst)})" if rate else "–"


def row(words: str) -> str:
    """What a row of the page says; its first cell has these words."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith("|") and words in line.split("|")[1])
    return line.partition("|")[2].partition("|")[2]


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        (
            "body of a request; of a node's request",
            (amount(requests.MOST_BYTES), amount(bounds.MOST_REPORT), amount(bounds.MOST_OBJECT)),
        ),
        ("nesting of JSON and YAML", (f"{bounds.MOST_DEPTH} levels",)),
        ("names, keys, labels, targets", (f"{bounds.MOST_WORD:,}", f"{bounds.MOST_TEXT:,} characters")),
        ("the reason (`why`) of a hold", (f"{bounds.MOST_WHY:,} characters",)),
        ("as sent to every node", (f"{size.OF_SETTING} bytes", amount(size.MOST_SHARED), amount(size.MOST_OWN))),
        ("all annotations of an object", (f"{validate.MOST_ANNOTATIONS:,} bytes",)),
        ("a knob in a hold", (f" {validate.MOST_SETTINGS};", f"{knob.NR_CPUS:,}")),
        ("lists and mappings that a client writes", (f"{bounds.MOST_ITEMS:,} entries",)),
        ("parts of a message over gRPC", (f"{bounds.MOST_VALUES:,}", f"{codec.MOST_PARTS:,}")),
        ("containers of all pods of a plan", (f"{what_if.MOST_CONTAINERS:,}",)),
        ("a quantity or a duration", (f"{bounds.MOST_AMOUNT} characters",)),
        ("a label or field selector", (f"{bounds.MOST_SELECTOR:,} characters", f"; {query.MOST_TERMS} ")),
        ("YAML, which only an apply may hold", (amount(plain_yaml.MOST_BYTES),)),
        ("findings, or conflicts of an apply", (f" {errors.MOST_FINDINGS};", f"{errors.MOST_SHOWN} characters")),
        ("headers of a request", (f" {connection.MOST_HEADERS} ",)),
        (
            "bytes of them; time until the request is there",
            (amount(connection.MOST_HEAD), f"{connection.ARRIVAL_S:g} s"),
        ),
        ("do not wait for the answers before them", (f" {connection.MOST_AHEAD + 1} ",)),
        (f"takes less than {amount(connection.LEAST_READ)} in {connection.STALL_S:g} s", ()),
        ("one answer over gRPC", (amount(visit.MOST_ANSWER),)),
        (
            "callers that are not known yet, TLS",
            (f"{crowd.MOST_UNKNOWN:,}", f"{crowd.MOST_UNKNOWN_OF_ONE:,}"),
        ),
        ("connections (likewise) of one node", (f" {crowd.MOST_OF_NODE};", f" {crowd.MOST_OF_PERSON};")),
        (
            "attempts without a valid token",
            (f"{rate_limits.STRANGERS_PER_S:g}/s", f"{rate_limits.STRANGERS_BURST:g} at once"),
        ),
        (f"in {connection.STALL_S:g} s, and less than {amount(visit.LEAST_PER_S)}/s", ()),
        (
            "gRPC health, which anyone may ask",
            (
                f"{health.MOST_ARRIVING}, {health.MOST_ARRIVING_OF_ONE};",
                f"{health.QUESTION_S:g} s; {health.MOST_WATCHES} ",
            ),
        ),
        (
            f"requests above {amount(requests.LARGE)} that are read",
            (f"| {large.MOST_OF_ONE}; {large.MOST_TOGETHER} |",),
        ),
        ("messages over gRPC that are arriving", (f"{large.MOST_ARRIVING}; {large.MOST_ARRIVING_TOGETHER} |",) * 3),
        (
            "a user of the same machine",
            (
                f"{holding.MOST_OF_ONE} holds of a user, {holding.MOST_OF_ALL} of all users",
                f"{socket_server.MOST_PER_USER} connections of a user, {socket_server.MOST_OTHERS} of all users",
                f"{amount(socket_server.MOST_BODY)} of a request",
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_limit_on_the_page_is_the_one_in_force(words: str, limits: tuple[str, ...]) -> None:
    said = row(words)
    assert [limit for limit in limits if limit not in said] == []


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        ("requests per second", lambda s: f"{s.requests_per_s:g} ({s.requests_burst:g})"),
        ("bytes written per second", lambda s: saved(s.bytes_per_s, s.bytes_burst)),
        ("bytes by which what it stored may grow", lambda s: saved(s.stored_per_s, s.stored_burst)),
        ("share of the event loop's time", lambda s: f"{s.loop_per_s:.0%} ({s.loop_burst:g} s)".replace("%", " %")),
        ("open watches, gRPC reflection included", lambda s: str(s.watches or "–")),
        ("answers under way; their bytes", lambda s: f"{s.answers}; {amount(s.answer_bytes)}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_share_of_a_caller_on_the_page_is_the_one_in_force(words: str, cell: Callable[[Share], str]) -> None:
    assert row(words).strip(" |").split(" | ") == [cell(share) for share in CLASSES]


@pytest.mark.parametrize(
    "sentence",
    [
        f"above {requests.LARGE // KIB} KiB are made one in",
        f"each has one piece of {requests.LARGE // KIB} KiB of its own",
        f"a class as a whole keeps to {REPORTS.class_per_s:.0%} of its time".replace("%", " %"),
        f"may be asked {rate_limits.PASSERS_PER_S:g} times a second",
        f"The tables of the limiter hold {rate_limits.MOST_KEPT:,} callers",
        f"In a line above\n{audit.MOST_BYTES // KIB} KiB it cuts texts to {audit.MOST_SHOWN} characters",
        f"Their lines wait in memory ({audit.MOST_WAITING // MIB} MiB at",
    ],
)
def test_a_sentence_with_a_limit_is_true(sentence: str) -> None:
    assert sentence in PAGE


def test_numbers_that_the_page_spells_out_are_those_in_force() -> None:
    assert "four\n  requests of one caller are worked on together" in PAGE
    assert desks.MOST_TOGETHER == 4
    assert "a history of its spec, twelve times" in PAGE
    assert growth.MOST_REVISIONS == 12
    assert "which comes within ten seconds" in PAGE
    assert large.PATIENCE_S == 10
    assert "a tenth of a second later" in PAGE
    assert rate_limits.PENALTY_S == 0.1


def test_the_auth_file_on_the_page_is_one() -> None:
    (shown,) = [b for b in blocks() if b.page == "docs/security.md" and b.language == "yaml"]
    assert [known.role for known in token_file.parse(shown.text.encode()).tokens] == ["editor", "node"]
