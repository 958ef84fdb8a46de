"""token: who may talk to the API. Through the API with an admin's token, or straight into the manager's auth file."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from j10ce.cli.output import dump, say, show_objects, table, warn
from j10ce.cli.paths import path
from j10ce.cli.peers import OneOf, Peers, Subcommands, seconds
from j10ce.daemon.secret_files import create_private
from j10ce.errors import Conflict, Finding, Invalid, NotFound
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import API_VERSION

ROLES = ("viewer", "editor", "node", "admin")
KIND = KINDS["Credential"]
HEAD = "# Who may talk to the API. It holds hashes; `j10ce-qos token` writes it, and the manager follows it.\n"
LIFE = {"bootstrap": "1d"}

auth_option = click.option(
    "--auth",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Work on this auth file of the manager, instead of through the API.",
)


@click.group("token", cls=Subcommands)
def token_command() -> None:
    """Make, list and revoke tokens for the API.

    \b
    Example:
      j10ce-qos token create alice --role editor -O alice.token
      j10ce-qos token list
    """


@token_command.command("create")
@click.argument("name")
@click.option("--role", type=OneOf((*ROLES, "bootstrap")), required=True, help="What its owner may do.")
@click.option("--node", help="Role node: the one it speaks for.")
@click.option("--for", "life", help="How long it is good for.  [default: 90d; bootstrap: 1d]")
@click.option("--uses", type=int, help="Role bootstrap: how many nodes it may enrol.  [default: 1]")
@click.option("--output", "-O", type=click.Path(path_type=Path), help="A fresh file, readable by you alone.")
@auth_option
@click.pass_obj
def create_command(
    peers: Peers,
    name: str,
    role: str,
    node: str | None,
    life: str | None,
    uses: int | None,
    output: Path | None,
    auth: Path | None,
) -> None:
    """Make a token and print it, or write it, this once; only its hash is kept.

    \b
    Example:
      j10ce-qos token create alice --role editor -O alice.token
      j10ce-qos token create rack7 --role bootstrap --uses 40 --for 2h -O bootstrap.token
    """
    if output and output.exists():
        raise Conflict(f"{output} exists already; name a fresh file")
    spec: dict[str, Any] = {"role": role, "expires": expiry(life or LIFE.get(role, "90d"))}
    spec |= {"node": node} if node else {}
    if auth:
        token = add_known(auth, name, spec)
    else:
        spec |= {"uses": uses or 1} if role == "bootstrap" else {}
        token = _create(peers, name, spec)
    warn(f"{name}: {role}, until {spec['expires']}; this is the only time it is shown")
    if output:
        create_private(output, f"{token}\n".encode())
    else:
        say(token)


@token_command.command("list")
@auth_option
@click.pass_obj
def list_command(peers: Peers, auth: Path | None) -> None:
    """List the tokens: their names, roles and expiry.

    \b
    Example:
      j10ce-qos token list
    """
    if auth is None:
        say(show_objects(KIND, peers.api().get(path(KIND, None))["items"], "table"))
        return
    rows = [[k["name"], k["role"], k.get("node"), k.get("expires")] for k in _known(auth)]
    say(table(["NAME", "ROLE", "NODE", "EXPIRES"], rows))


@token_command.command("revoke")
@click.argument("name")
@auth_option
@click.pass_obj
def revoke_command(peers: Peers, name: str, auth: Path | None) -> None:
    """End a token at once, on every manager.

    \b
    Example:
      j10ce-qos token revoke alice
    """
    if auth is None:
        peers.api().delete(path(KIND, None, name))
    else:
        known = _known(auth)
        left = [k for k in known if k["name"] != name]
        if len(left) == len(known):
            raise NotFound(f"{auth} knows no {name}")
        _write(auth, left)
    say(f"{name} revoked")


def add_known(file: Path, name: str, spec: dict[str, Any]) -> str:
    """A fresh token, known to the auth file from here on; raises Conflict where the name is taken."""
    from j10ce.manager.access.tokens import make

    known = _known(file) if file.exists() else []
    if any(k["name"] == name for k in known):
        raise Conflict(f"{file} knows a token {name} already; revoke it first, or choose another name")
    token, hash_ = make(name)
    _write(file, [*known, {"name": name, **spec, "hash": hash_}])
    return token


def life_s(life: str) -> float:
    if (time_s := seconds("--for", life)) <= 0:
        raise Invalid([Finding("--for", life, "no time at all", "write it as 90d")], "option")
    return time_s


def expiry(life: str) -> str:
    ends = time.clock_gettime(time.CLOCK_REALTIME) + life_s(life)
    return datetime.fromtimestamp(int(ends), UTC).isoformat().replace("+00:00", "Z")


def _create(peers: Peers, name: str, spec: dict[str, Any]) -> str:
    from j10ce.manager.access.tokens import make

    token, hash_ = make(name)
    body = {"apiVersion": API_VERSION, "kind": KIND.name, "metadata": {"name": name}, "spec": {**spec, "hash": hash_}}
    peers.api().post(path(KIND, None), body)
    return token


def _known(file: Path) -> list[dict[str, Any]]:
    from j10ce.manager.access.token_file import load
    from j10ce.model.schema import plain

    return [dict(known) for known in plain(load(file))["tokens"]]


def _write(file: Path, known: list[dict[str, Any]]) -> None:
    """Never a file that the manager would refuse."""
    from j10ce.daemon.secret_files import write_private
    from j10ce.manager.access.token_file import parse

    text = HEAD + dump({"tokens": known}, "yaml") + "\n"
    parse(text.encode())
    write_private(file, text)
