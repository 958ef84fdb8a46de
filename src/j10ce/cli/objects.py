"""apply, get, describe, delete, diff: the objects of the API, and the workloads of this host."""

from __future__ import annotations

import difflib
from typing import Any

import click

from j10ce.cli.manifests import load
from j10ce.cli.output import dig, dump, say, show_objects
from j10ce.cli.peers import Peers, all_namespaces, complete_kinds, complete_names, namespace_option, output_option
from j10ce.errors import Finding, Invalid, NotFound, QosError
from j10ce.model.kinds import GROUP, KINDS, VERSION, Kind
from j10ce.policy.profiles import canonical

BASE = f"/apis/{GROUP}/{VERSION}"
files_option = click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="File, directory, or - for standard input."
)


@click.command("apply")
@files_option
@click.option("--dry-run", is_flag=True, help="Validate on the server, store nothing.")
@click.pass_obj
def apply_command(peers: Peers, files: tuple[str, ...], dry_run: bool) -> None:
    """Create or update objects from files.

    All files are read and checked before the first object is sent.

    \b
    Example:
      j10ce-qos apply -f examples/standalone/
    """
    api = peers.api()
    objects = load(files)
    query = {"dryRun": "All"} if dry_run else {}
    if len(objects) > 1:
        for raw in objects:  # nothing is stored unless everything would be
            _put(api, raw, {"dryRun": "All"})
    for raw in objects:
        done = _put(api, raw, query)
        say(f"{_title(raw)} {done}" + (" (dry run)" if dry_run else ""))


@click.command("get")
@click.argument("kind", shell_complete=complete_kinds)
@click.argument("name", required=False, shell_complete=complete_names)
@namespace_option
@all_namespaces
@output_option
@click.option("-w", "--watch", is_flag=True, help="Keep printing changes.")
@click.option("-l", "--selector", default="", help="Label selector, such as app=web.")
@click.pass_obj
def get_command(
    peers: Peers, kind: str, name: str | None, namespace: str, everywhere: bool, output: str, watch: bool, selector: str
) -> None:
    """List objects of a kind, or show one.

    \b
    Example:
      j10ce-qos get workloads -A -o wide
      j10ce-qos get qosprofiles ls -o yaml
    """
    found = find_kind(kind)
    api = peers.for_kind(found)
    if name:
        obj = api.get(_path(found, namespace, _name(found, name)))
        say(dump(obj, output) if output in ("json", "yaml") else show_objects(found, [obj], output))
        return
    query = {"labelSelector": selector} if selector else {}
    listing = api.get(_path(found, None if everywhere else namespace), **query)
    if listing["items"] or output in ("json", "yaml"):
        say(show_objects(found, listing["items"], output))
    else:
        say(
            f"No {found.plural} found"
            + ("" if everywhere or not found.namespaced else f" in namespace {namespace}")
            + "."
        )
    if watch:
        since = listing["metadata"]["resourceVersion"]
        for event in api.stream(_path(found, None if everywhere else namespace), watch="1", resourceVersion=since):
            if event["type"] != "BOOKMARK":
                say(f"{event['type'].lower():10} {show_objects(found, [event['object']], output).splitlines()[-1]}")


@click.command("describe")
@click.argument("kind", shell_complete=complete_kinds)
@click.argument("name", shell_complete=complete_names)
@namespace_option
@click.pass_obj
def describe_command(peers: Peers, kind: str, name: str, namespace: str) -> None:
    """Show one object with all that is known of it.

    \b
    Example:
      j10ce-qos describe qosprofile ls
      j10ce-qos describe minimalreservationpolicy db
    """
    from j10ce.cli.describe import describe

    found = find_kind(kind)
    obj = peers.for_kind(found).get(_path(found, namespace, _name(found, name)))
    say(describe(found, obj))


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
    api = peers.api()
    if not files and not (kind and names):
        raise click.UsageError("name a kind and at least one object, or give -f")
    doomed = [(KINDS[o["kind"]], _namespace(o), o["metadata"]["name"]) for o in (load(files) if files else [])]
    doomed += [(found := find_kind(kind or ""), namespace, _name(found, n)) for n in names]
    for found, where, name in doomed:
        api.delete(_path(found, where, name))
        say(f"{found.name.lower()}/{name} deleted")


@click.command("diff")
@files_option
@click.pass_obj
def diff_command(peers: Peers, files: tuple[str, ...]) -> None:
    """Show what `apply` would change; exits 1 when anything differs.

    \b
    Example:
      j10ce-qos diff -f examples/standalone/
    """
    api = peers.api()
    differs = False
    for raw in load(files):
        try:
            live = api.get(_path(KINDS[raw["kind"]], _namespace(raw), raw["metadata"]["name"]))
        except NotFound:
            live = {}
        wanted = {**live, **raw, "metadata": {**live.get("metadata", {}), **raw["metadata"]}}
        old, new = (dump(side, "yaml").splitlines() if side else [] for side in (live, wanted))
        delta = list(difflib.unified_diff(old, new, f"live {_title(raw)}", f"file {_title(raw)}", lineterm=""))
        differs = differs or bool(delta)
        if delta:
            say("\n".join(delta))
    if differs:
        raise SystemExit(1)


def find_kind(text: str) -> Kind:
    """A kind by its name, plural or short name, in any case."""
    wanted = text.lower()
    for kind in KINDS.values():
        if wanted in (kind.name.lower(), kind.plural, *kind.short):
            return kind
    allowed = "use one of " + ", ".join(k.plural for k in KINDS.values())
    raise Invalid([Finding("kind", text, "unknown kind", allowed)], "kind")


def _put(api: Any, raw: dict[str, Any], query: dict[str, str]) -> str:
    kind = KINDS[raw["kind"]]
    where = _path(kind, _namespace(raw), raw["metadata"]["name"])
    try:
        live = api.get(where)
    except NotFound:
        api.post(_path(kind, _namespace(raw)), raw, **query)
        return "created"
    same = all(live.get(k) == v for k, v in raw.items() if k != "metadata")
    if same and all(live["metadata"].get(k) == v for k, v in raw["metadata"].items()):
        return "unchanged"
    metadata = {**raw["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    try:
        api.put(where, {**raw, "metadata": metadata}, **query)
    except QosError as e:
        e.add_note(f"while applying {_title(raw)}")
        raise
    return "configured"


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{namespace}" if kind.namespaced and namespace is not None else ""
    return f"{BASE}{scope}/{kind.plural}" + (f"/{name}" if name else "")


def _namespace(raw: dict[str, Any]) -> str:
    return str(dig(raw, "metadata.namespace") or "default")


def _name(kind: Kind, name: str) -> str:
    return canonical(name) if kind.name == "QoSProfile" else name


def _title(raw: dict[str, Any]) -> str:
    return f"{raw['kind'].lower()}/{raw['metadata']['name']}"
