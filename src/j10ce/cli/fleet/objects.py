"""apply, delete, diff: from files to the objects of the API."""

from __future__ import annotations

import difflib
from typing import Any, Final

import click

from j10ce.cli.client import Client
from j10ce.cli.manifests import load
from j10ce.cli.output import dump, say, warn
from j10ce.cli.paths import apart, name_of, namespace_of, path, title
from j10ce.cli.peers import Peers, complete_kinds, complete_names, find_kind, namespace_option
from j10ce.errors import Finding, Invalid, NotFound, QosError
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.text.cells import dig
from j10ce.policy.profiles import builtin

MOST_NAMED: Final = 5
files_option = click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="File, directory, or - for standard input."
)


@click.command("apply")
@files_option
@click.option("--dry-run", is_flag=True, help="Validate on the server, store nothing.")
@click.pass_obj
def apply_command(peers: Peers, files: tuple[str, ...], dry_run: bool) -> None:
    """Create or update objects from files: all of them, or none when one is wrong.

    \b
    Example:
      j10ce-qos apply -f examples/standalone/
    """
    objects = _storable(load(files))
    api = peers.api()
    rehearsals = [{"dryRun": "All"}] if dry_run or len(objects) > 1 else []
    for query in rehearsals:
        rehearsed = [_put(api, raw, query) for raw in objects]
        if dry_run:
            say("\n".join(f"{title(raw)} {done} (dry run)" for raw, done in zip(objects, rehearsed, strict=True)))
            return
    for raw in objects:
        say(f"{title(raw)} {_put(api, raw, {})}")


@click.command("delete")
@click.argument("kind", required=False, shell_complete=complete_kinds)
@click.argument("names", nargs=-1, shell_complete=complete_names)
@click.option("-f", "--filename", "files", multiple=True, help="Delete what these files name.")
@namespace_option
@click.pass_obj
def delete_command(
    peers: Peers, kind: str | None, names: tuple[str, ...], files: tuple[str, ...], namespace: str
) -> None:
    """Delete objects by name or by file.

    \b
    Example:
      j10ce-qos delete minimalreservationpolicy db
      j10ce-qos delete -f examples/standalone/
    """
    if not files and not (kind and names):
        raise click.UsageError("name a kind and at least one object, or give -f")
    doomed = [(KINDS[o["kind"]], namespace_of(o), o["metadata"]["name"]) for o in (load(files) if files else [])]
    for name in names:
        found = find_kind(kind or "")
        where, only = apart(found, namespace, name)
        doomed.append((found, where, name_of(found, only)))
    for found, _, name in doomed:
        _refuse_workload(found, f"end the process of {name}, or let go of it with `j10ce-qos forget {name}`")
    api = peers.api()
    for found, where, name in doomed:
        users = _users(peers, name) if found.name == "QoSProfile" else []
        api.delete(path(found, where, name))
        say(f"{found.name.lower()}/{name} deleted")
        if found.name == "QoSProfile":
            _warn_of_loss(name, users)


def _users(peers: Peers, profile: str) -> list[str]:
    """The workloads of this profile, as far as whoever is asked knows any."""
    workload = KINDS["Workload"]
    try:
        listed = peers.for_kind(workload).get(path(workload, None))["items"]
    except QosError:
        return []  # an API without workloads, or no agent: the profile can be deleted all the same
    return [f"{namespace_of(w)}/{w['metadata']['name']}" for w in listed if dig(w, "status.profile") == profile]


def _warn_of_loss(profile: str, users: list[str]) -> None:
    built_in = profile in {p.metadata.name for p in builtin()}
    back = "the manager makes it again at its next start" if built_in else "`j10ce-qos apply` brings it back"
    if users:
        more = f" and {len(users) - MOST_NAMED} more" if users[MOST_NAMED:] else ""
        warn(f"in use by {', '.join(users[:MOST_NAMED])}{more}: they lose what {profile} gave them; {back}")
    elif built_in:
        warn(f"{profile} is built in: nobody can choose it until it is back; {back}")


@click.command("diff")
@files_option
@click.pass_obj
def diff_command(peers: Peers, files: tuple[str, ...]) -> None:
    """Show what `apply` would change; exits 1 when anything differs.

    \b
    Example:
      j10ce-qos diff -f examples/standalone/
    """
    objects = _storable(load(files))
    api = peers.api()
    changed = [delta for raw in objects if (delta := _delta(api, raw))]
    if changed:
        say("\n".join(changed))
        raise SystemExit(1)


def _delta(api: Client, raw: dict[str, Any]) -> str:
    try:
        live = _comparable(api.get(_where(raw)))
    except NotFound:
        live = {}
    old, new = (dump(side, "yaml").splitlines() if side else [] for side in (live, _comparable(raw)))
    return "\n".join(difflib.unified_diff(old, new, f"live {title(raw)}", f"file {title(raw)}", lineterm=""))


def _put(api: Client, raw: dict[str, Any], query: dict[str, str]) -> str:
    """Make the server's object what the file says; what that took."""
    try:
        live = api.get(_where(raw))
    except NotFound:
        api.post(path(KINDS[raw["kind"]], namespace_of(raw)), raw, **query)
        return "created"
    if _comparable(live) == _comparable(raw):
        return "unchanged"
    metadata = {**raw["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    api.put(_where(raw), {**raw, "metadata": metadata}, **query)
    return "configured"


def _comparable(obj: dict[str, Any]) -> dict[str, Any]:
    """What a file decides; the rest is the server's."""
    kind, metadata = KINDS[obj["kind"]], obj["metadata"]
    decided = {k: metadata[k] for k in ("annotations", "labels", "name") if metadata.get(k)}
    if kind.namespaced:
        decided["namespace"] = namespace_of(obj)
    told = {k: _sorted(v) for k, v in sorted(obj.items()) if k not in ("metadata", "status")}
    return {**told, "metadata": _sorted(decided)}


def _sorted(value: Any) -> Any:
    return {k: _sorted(v) for k, v in sorted(value.items())} if isinstance(value, dict) else value


def _where(raw: dict[str, Any]) -> str:
    return path(KINDS[raw["kind"]], namespace_of(raw), raw["metadata"]["name"])


def _storable(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for raw in objects:
        _refuse_workload(KINDS[raw["kind"]], "workloads come with `j10ce-qos run` and `j10ce-qos adopt`")
    return objects


def _refuse_workload(kind: Kind, instead: str) -> None:
    if not kind.stored:
        raise Invalid([Finding("kind", kind.name, "is not kept in the API", instead)], "kind")
