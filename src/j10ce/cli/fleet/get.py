"""get and describe: the objects of the API, and the workloads and holds of this host."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import click

from j10ce.cli.output import cells, dump, headings, say, show_objects, table, without_owners
from j10ce.cli.paths import apart, name_of, path
from j10ce.cli.peers import (
    Peers,
    all_namespaces,
    complete_kinds,
    complete_names,
    find_kind,
    namespace_option,
    output_option,
)
from j10ce.errors import NotFound, QosError
from j10ce.model.catalogue import KINDS, Kind

POLL_S = 1.0


@click.command("get")
@click.argument("kind", shell_complete=complete_kinds)
@click.argument("name", required=False, shell_complete=complete_names)
@click.option("-n", "--namespace", help="Namespace.  [default: default; for workloads and holds: all]")
@all_namespaces
@output_option
@click.option("-w", "--watch", is_flag=True, help="Keep printing changes until Ctrl-C.")
@click.option("-l", "--selector", default="", help="Label selector, such as app=web.")
@click.pass_obj
def get_command(
    peers: Peers, kind: str, name: str | None, namespace: str | None, everywhere: bool, output: str, watch: bool,
    selector: str,
) -> None:  # fmt: skip
    """List objects of a kind, or show one.

    Workloads and holds are those of this host, with or without a control plane.

    \b
    Example:
      j10ce-qos get workloads -o wide
      j10ce-qos get qosprofiles ls -o yaml
    """
    found = find_kind(kind)
    if name:
        if watch or selector or everywhere:
            raise click.UsageError("a name goes without --watch, --selector and --all-namespaces")
        obj = fetch(peers, found, namespace or "default", name)
        say(dump(without_owners(obj), output) if output in ("json", "yaml") else show_objects(found, [obj], output))
        return
    of_host = peers.of_host(found)
    where = None if everywhere else namespace or (None if of_host else "default")
    query = Query(found, where, selector)
    listing = _list_host(peers, query) if of_host else _list_api(peers, query)
    if watch:
        changes = _poll(peers, query, listing) if of_host else _stream(peers, query, listing)
        _print_changes(found, listing["items"], changes, output)
    elif listing["items"] or output in ("json", "yaml"):
        say(show_objects(found, listing["items"], output))
    else:
        say(f"No {found.plural} found" + ("." if where is None or not found.namespaced else f" in namespace {where}."))


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
      j10ce-qos describe minimalreservationpolicy payments/db
    """
    from j10ce.cli.fleet.describe import describe
    from j10ce.cli.fleet.nodes import describe_node

    found = find_kind(kind)
    obj = fetch(peers, found, namespace, name)
    say(describe_node(obj) if found.name == "NodeQoS" else describe(found, obj))


class Query(NamedTuple):
    kind: Kind
    namespace: str | None  # None: all
    selector: str

    @property
    def path(self) -> str:
        return path(self.kind, self.namespace)


def fetch(peers: Peers, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    """One object; raises NotFound."""
    namespace, name = apart(kind, namespace, name)
    if kind.name != "Hold" or not peers.of_host(kind):
        obj: dict[str, Any] = peers.for_kind(kind).get(path(kind, namespace, name_of(kind, name)))
        return obj
    for hold in _list_host(peers, Query(kind, namespace, ""))["items"]:
        if hold["metadata"]["name"] == name:
            return dict(hold)
    raise NotFound(f"there is no hold {namespace}/{name} in force on this host")


def _list_api(peers: Peers, query: Query) -> dict[str, Any]:
    asked = {"labelSelector": query.selector} if query.selector else {}
    listing: dict[str, Any] = peers.api().get(query.path, **asked)
    return listing


def _list_host(peers: Peers, query: Query) -> dict[str, Any]:
    """What the agent lists; it knows no selectors, so they are applied here."""
    from j10ce.manager.api.query import read

    asked = read({"labelSelector": query.selector} if query.selector else {})
    listing: dict[str, Any] = peers.agent().get("/v1/holds" if query.kind is KINDS["Hold"] else "/v1/workloads")
    items = [
        o
        for o in listing["items"]
        if query.namespace in (None, o["metadata"].get("namespace")) and asked.matches(o["metadata"].get("labels", {}))
    ]
    return {**listing, "items": items}


def _stream(peers: Peers, query: Query, listing: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    since = listing["metadata"]["resourceVersion"]
    asked = {"labelSelector": query.selector} if query.selector else {}
    while True:  # the server ends a watch after an hour; it goes on from where it was
        for event in peers.api().stream(query.path, watch="1", allowWatchBookmarks="1", resourceVersion=since, **asked):
            if event["type"] == "ERROR":
                raise QosError(f"the watch ended: {event['object'].get('message')}; start it again")
            since = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                yield event["type"].lower(), event["object"]


def _poll(peers: Peers, query: Query, listing: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The agent has no watch: list again, and tell what came, changed and went. Usage alone is no change."""
    known = {_key(o): o for o in listing["items"]}
    while True:
        time.sleep(POLL_S)
        seen = {_key(o): o for o in _list_host(peers, query)["items"]}
        yield from (("deleted", o) for key, o in known.items() if key not in seen)
        yield from (("added", o) for key, o in seen.items() if key not in known)
        yield from (("modified", o) for key, o in seen.items() if key in known and _facts(o) != _facts(known[key]))
        known = seen


def _key(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _facts(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "status": {k: v for k, v in (obj.get("status") or {}).items() if k != "usage"}}


def _print_changes(
    kind: Kind, listed: list[dict[str, Any]], changes: Iterator[tuple[str, dict[str, Any]]], style: str
) -> None:
    """One line per change, under the columns of the first listing."""
    first = [("listed", o) for o in listed]
    if style in ("json", "yaml"):
        for event, obj in chain(first, changes):
            told = {"event": event, "object": without_owners(obj)}
            say(json.dumps(told, ensure_ascii=False) if style == "json" else f"---\n{dump(told, 'yaml')}")
        return
    lines = [["EVENT   ", *headings(kind, style)], *([event, *cells(kind, o, style)] for event, o in first)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    say(table(lines[0], lines[1:]))
    for event, obj in changes:
        say(table([event, *cells(kind, obj, style)], [], least=widths))
