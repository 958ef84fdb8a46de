"""A token is recognised by its hash, for as long as its credential lives, and by nothing else."""

from __future__ import annotations

import ast
import asyncio
import math
import string
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.http.status import Refusal
from j10ce.manager.access.auth import Access
from j10ce.manager.access.tokens import OWNER, TOKEN, Keyring, KeyringEntry, entry, hash_of, make, redact
from j10ce.manager.fairness.rate_limits import STRANGERS_BURST, Limits
from j10ce.manager.identity import Caller, Role
from j10ce.model.kinds import Credential, CredentialSpec, Meta
from j10ce.policy.validation.validate import validate
from j10ce.store.memory import MemoryStore
from tests.style.sources import dotted, load

NOW = 1_800_000_000.0
ALICE, ALICE_HASH = make("alice")
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)


def keyring(wall: float = NOW, **spec: Any) -> Keyring:
    made = Keyring(MemoryStore(lambda: wall), lambda: wall, owner="sesame")
    made.static = {"alice": entry("alice", CredentialSpec(role="editor", hash=ALICE_HASH, **spec))}
    return made


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


def test_tokens_are_random_and_only_their_hash_is_kept() -> None:
    made = [make("alice") for _ in range(100)]
    assert len({token for token, _ in made}) == len({hash_ for _, hash_ in made}) == 100
    for token, hash_ in made:
        assert TOKEN.fullmatch(token)
        assert hash_ == hash_of(token.rpartition(".")[2])
        assert token.rpartition(".")[2] not in hash_


def test_a_token_is_recognised() -> None:
    ticket = keyring().recognise(ALICE.encode())
    assert ticket is not None
    assert ticket.caller == Caller("alice", Role.EDITOR)
    assert keyring().recognise(b"sesame") == (OWNER, "", ticket_digest(b"sesame"), math.inf)


def ticket_digest(token: bytes) -> bytes:
    ticket = keyring().recognise(token)
    return ticket.digest if ticket else b""


SECRET = ALICE.rpartition(".")[2]


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"j10ce", id="prefix"),
        pytest.param(b"j10ce.alice.", id="no secret"),
        pytest.param(f"j10ce.bob.{SECRET}".encode(), id="another name"),
        pytest.param(f"j10ce..{SECRET}".encode(), id="no name"),
        pytest.param(f"alice.{SECRET}".encode(), id="no prefix"),
        pytest.param(SECRET.encode(), id="the secret alone"),
        pytest.param(f"J10CE.alice.{SECRET}".encode(), id="another case"),
        pytest.param(ALICE.encode() + b"A", id="longer"),
        pytest.param(ALICE.encode()[:-1], id="shorter"),
        pytest.param(f"j10ce.alice.{ALICE_HASH}".encode(), id="the hash for the secret"),
        pytest.param(f"j10ce.alice.{ALICE_HASH[7:]}".encode(), id="the bare hash"),
        pytest.param(b"j10ce.owner.sesame", id="the owner by name"),
    ],
)
def test_what_is_almost_a_token_is_not_recognised(token: bytes) -> None:
    assert keyring().recognise(token) is None


@given(token=st.binary(max_size=300))
@example(token=b"j10ce.\xff\xfe.\x00")
@example(token=b"." * 300)
def test_no_bytes_are_recognised_by_chance_or_break_the_check(token: bytes) -> None:
    assert keyring().recognise(token) is None


@given(header=st.one_of(st.binary(max_size=100), st.binary(max_size=80).map(lambda b: b"Bearer " + b)))
@settings(max_examples=30)
@example(header=b"Bearer")
@example(header=b"bearer  sesame")
@example(header=b"Bearer sesame\r\nX: y")
@example(header="Bearer sésame".encode())
@example(header=b"Basic sesame")
def test_any_other_authorization_header_is_a_401_and_then_a_429(header: bytes) -> None:
    access = Access(keyring(), Limits(lambda: 0.0), loopback=False)
    codes = []
    for _ in range(int(STRANGERS_BURST) + 1):
        with pytest.raises(Refusal) as refused:
            access.authenticate(header, "192.0.2.1")
        codes.append(refused.value.code)
    assert codes == [401] * int(STRANGERS_BURST) + [429]
    assert access.authenticate(b"Bearer sesame", "192.0.2.1").caller == OWNER, "whoever has a token gets in"


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER "])
def test_the_scheme_is_read_in_any_case(scheme: bytes) -> None:
    access = Access(keyring(), Limits(lambda: 0.0), loopback=False)
    assert access.authenticate(scheme + ALICE.encode(), "").caller.name == "alice"


@pytest.mark.parametrize(
    ("spec", "alive"),
    [
        pytest.param({}, True, id="without an end"),
        pytest.param({"expires": at(1)}, True, id="before its end"),
        pytest.param({"expires": at(0)}, False, id="at its end"),
        pytest.param({"expires": at(-1)}, False, id="after its end"),
        pytest.param({"uses": 1}, True, id="with a use left"),
        pytest.param({"uses": 0}, False, id="used up"),
    ],
)
def test_a_token_ends(spec: dict[str, Any], alive: bool) -> None:
    assert (keyring(**spec).recognise(ALICE.encode()) is not None) == alive


def test_after_a_rotation_the_former_secret_counts_for_a_while() -> None:
    fresh, fresh_hash = make("alice")
    spec = CredentialSpec(role="editor", hash=fresh_hash, former_hash=ALICE_HASH, former_expires=at(10))
    for wall, former in ((NOW, True), (NOW + 10, False)):
        made = keyring(wall)
        made.static = {"alice": entry("alice", spec)}
        assert made.recognise(fresh.encode()) is not None
        assert (made.recognise(ALICE.encode()) is not None) == former


def test_a_ticket_ends_with_its_credential() -> None:
    made = keyring()
    ticket = made.recognise(ALICE.encode())
    assert ticket is not None
    assert made.holds(ticket)
    made.static = {"alice": KeyringEntry(Caller("alice", Role.VIEWER), ticket.digest)}
    assert not made.holds(ticket), "another role is another credential"
    made.static = {}
    assert not made.holds(ticket)


@pytest.fixture
async def followed() -> AsyncIterator[Keyring]:
    made = Keyring(MemoryStore(lambda: NOW), lambda: NOW)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(made.follow())
        await made.synced.wait()
        yield made
        following.cancel()


async def settle(made: Keyring, token: str, known: bool) -> None:
    for _ in range(10_000):
        if (made.recognise(token.encode()) is not None) == known:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{token} is {'not ' if known else ''}known")


async def test_credential_objects_are_followed(followed: Keyring) -> None:
    obj = Credential(metadata=Meta(name="alice"), spec=CredentialSpec(role="viewer", hash=ALICE_HASH))
    stored = await followed.store.put(obj)
    await settle(followed, ALICE, True)
    assert isinstance(stored, Credential)
    fresh, hash_ = make("alice")
    await followed.store.put(replace(stored, spec=replace(stored.spec, hash=hash_)))
    await settle(followed, ALICE, False)
    assert followed.recognise(fresh.encode()) is not None
    await followed.store.delete("Credential", "", "alice")
    await settle(followed, fresh, False)


async def test_a_credential_written_past_the_api_opens_nothing_and_stops_nothing(followed: Keyring) -> None:
    for name, hash_ in (("odd", "sha256:xyz"), ("empty", ""), ("alice", ALICE_HASH)):
        spec = CredentialSpec(role="admin", hash=hash_)
        await followed.store.put(Credential(metadata=Meta(name=name), spec=spec))
    await settle(followed, ALICE, True)
    assert followed.recognise(b"j10ce.odd.xyz") is None
    assert followed.recognise(b"j10ce.empty.") is None


@given(name=NAMES, text=st.text(st.sampled_from(string.printable), max_size=20))
def test_nothing_like_a_token_or_a_hash_survives_redaction(name: str, text: str) -> None:
    token, hash_ = make(name)
    clean = redact(f'{text}"{token}" {hash_}{text}')
    assert token.rpartition(".")[2] not in clean
    assert hash_ not in clean


def test_a_finding_never_shows_what_stands_in_the_place_of_a_hash() -> None:
    obj = Credential(metadata=Meta(name="alice"), spec=CredentialSpec(role="viewer", hash=ALICE))
    assert SECRET not in " ".join(map(str, validate(obj)))


def test_secrets_are_compared_in_constant_time() -> None:
    """No `==` on digests, hashes or tokens in the modules that check them."""
    for source in load("src/j10ce/manager"):
        if source.module not in ("manager/access/tokens.py", "manager/access/auth.py"):
            continue
        compared = [node for node in ast.walk(source.tree) if isinstance(node, ast.Compare)]
        names = {dotted(side).split(".")[-1] for c in compared for side in (c.left, *c.comparators)}
        assert not names & {"digest", "former", "token", "secret", "hash", "authorization"}, source.path
    calls = [
        dotted(call.func)
        for s in load("src/j10ce/manager")
        if s.module == "manager/access/tokens.py"
        for call in s.calls()
    ]
    assert calls.count("hmac.compare_digest") >= 3
