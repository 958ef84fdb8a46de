"""apply, delete, diff: from files to the objects of the API."""

from __future__ import annotations

import difflib
from typing import Any, Final

import click

from j10ce.cli.client import Client
from j10ce.cli.manifests import load
from j10ce.cli.meant import kinds_and_names, suggesting
from j10ce.cli.output import Verbatim, dump, say
from j10ce.cli.paths import apart, name_of, namespace_of, path, title
from j10ce.cli.peers import Peers, complete_words, files_option, namespace_option
from j10ce.errors import Conflict, Finding, Invalid, NotFound, QosError
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.text.cells import dig
from j10ce.policy.profiles import builtin

MOST_NAMED: Final = 5
DISCARD: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"  # Kubernetes' name for it


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
@click.argument("words", nargs=-1, metavar="[KIND NAME...]", shell_complete=complete_words)
@click.option("-f", "--filename", "files", multiple=True, help="Delete what these files name.")
@click.option("--force", is_flag=True, help="Delete profiles that workloads use, or that are built in, too.")
@click.option("--unreadable", is_flag=True, help="Delete also what the manager's release cannot read.")
@namespace_option
@click.pass_obj
def delete_command(
    peers: Peers, words: tuple[str, ...], files: tuple[str, ...], force: bool, unreadable: bool, namespace: str
) -> None:
    """Delete objects by name or by file.

    A profile that a workload of this host uses, or that is built in, needs --force. An object that another release
    wrote and the manager cannot read needs an administrator and --unreadable; nothing brings it back.

    \b
    Example:
      j10ce-qos delete minimalreservationpolicy db
      j10ce-qos delete -f examples/standalone/
    """
    doomed = [(KINDS[o["kind"]], namespace_of(o), o["metadata"]["name"]) for o in (load(files) if files else [])]
    for kind, name in kinds_and_names(words) if words else ():
        where, only = apart(kind, namespace, name)
        doomed.append((kind, where, name_of(kind, only)))
    if not doomed or not all(name for _, _, name in doomed):
        raise click.UsageError("name a kind and at least one object, or give -f")
    for kind, _, name in doomed:
        _refuse_workload(kind, f"end the process of {name}, or let go of it with `j10ce-qos forget {name}`")
        if kind.name == "QoSProfile" and not force:
            _refuse_profile_in_use(peers, name)
    api, how = peers.api(), {DISCARD: "true"} if unreadable else {}
    for kind, where, name in doomed:
        with suggesting(peers, kind, where, name):
            api.delete(path(kind, where, name), **how)
        say(f"{kind.name.lower()}/{name} deleted")


def _refuse_profile_in_use(peers: Peers, profile: str) -> None:
    """Raises Conflict: what goes is a name that workloads were promised something by."""
    if users := _users(peers, profile):
        more = f" and {len(users) - MOST_NAMED} more" if users[MOST_NAMED:] else ""
        named = ", ".join(users[:MOST_NAMED]) + more
        raise Conflict(f"{profile} is in use by {named}, and would not apply to them any more; --force deletes it")
    if profile in {p.metadata.name for p in builtin()}:
        back = "nobody could choose it until the manager makes it again at its next start"
        raise Conflict(f"{profile} is built in: {back}; --force deletes it")


def _users(peers: Peers, profile: str) -> list[str]:
    """The workloads of this profile, as far as whoever is asked knows any."""
    workload = KINDS["Workload"]
    try:
        listed = peers.for_kind(workload).get(path(workload, None))["items"]
    except QosError:
        return []  # an API without workloads, or no agent: the profile can be deleted all the same
    return [f"{namespace_of(w)}/{w['metadata']['name']}" for w in listed if dig(w, "status.profile") == profile]


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
        say(Verbatim("\n".join(changed)))
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
    rest = {k: _sorted(v) for k, v in sorted(obj.items()) if k not in ("metadata", "status")}
    return {**rest, "metadata": _sorted(decided)}


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
