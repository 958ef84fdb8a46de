"""get and describe: the objects of the API, and the workloads and holds of this host."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import click

from j10ce.cli.meant import kinds_and_names, suggesting
from j10ce.cli.output import Verbatim, cells, dump, headings, say, show_objects, table, without_owners
from j10ce.cli.paths import apart, name_of, path
from j10ce.cli.peers import (
    Peers,
    all_namespaces,
    complete_words,
    namespace_option,
    output_option,
)
from j10ce.errors import NotFound, QosError
from j10ce.model.catalogue import KINDS, Kind

POLL_S = 1.0


@click.command("get")
@click.argument("words", nargs=-1, metavar="KIND [NAME]...", shell_complete=complete_words)
@click.option("-n", "--namespace", help="Namespace.  [default: default; for workloads and holds: all]")
@all_namespaces
@output_option
@click.option("-w", "--watch", is_flag=True, help="Keep printing changes until Ctrl-C.")
@click.option("-l", "--selector", default="", help="Label selector, such as app=web.")
@click.pass_obj
def get_command(
    peers: Peers, words: tuple[str, ...], namespace: str | None, everywhere: bool, output: str, watch: bool,
    selector: str,
) -> None:  # fmt: skip
    """List objects of a kind, or show some by name.

    Workloads and holds are those of this host, with or without a control plane. Kinds are qosprofiles (qp, qos),
    minimalreservationpolicies (mrp), nodestrategies (nst), nodeqoses (nq, node, nodes), holds (qh), workloads (wl),
    policyrevisions (polrev) and credentials (cred); `KIND/NAME`, `mrp,wl` and `all` are understood.

    \b
    Example:
      j10ce-qos get workloads -o wide
      j10ce-qos get qosprofiles ls -o yaml
    """
    asked = kinds_and_names(words)
    if any(name for _, name in asked):
        if watch or selector or everywhere:
            raise click.UsageError("a name goes without --watch, --selector and --all-namespaces")
        _show_named(peers, asked, namespace or "default", output)
        return
    queries = [_query(peers, kind, namespace, everywhere, selector) for kind, _ in asked]
    if not watch:
        _show_listings([(query, _list(peers, query)) for query in queries], output)
    elif len(queries) > 1:
        raise click.UsageError("--watch goes with one kind")
    else:
        listing = _list(peers, queries[0])
        changes = _poll if peers.of_host(queries[0].kind) else _stream
        _print_changes(queries[0].kind, listing["items"], changes(peers, queries[0], listing), output)


def _show_named(peers: Peers, asked: list[tuple[Kind, str]], namespace: str, output: str) -> None:
    objects = [(kind, fetch(peers, kind, namespace, name)) for kind, name in asked]
    if output in ("json", "yaml"):
        items = [without_owners(obj) for _, obj in objects]
        say(dump(items[0] if len(items) == 1 else _list_of(items), output))
        return
    for n, kind in enumerate(dict.fromkeys(kind for kind, _ in objects)):
        _say_apart(n, show_objects(kind, [obj for k, obj in objects if k is kind], output))


def _show_listings(listings: list[tuple[Selection, dict[str, Any]]], output: str) -> None:
    """One kind as it is; of several the empty ones are left out, unless all are."""
    if output in ("json", "yaml") and len(listings) > 1:
        say(dump(_list_of([without_owners(o) for _, listing in listings for o in listing["items"]]), output))
        return
    shown = [(query, items) for query, listing in listings if (items := listing["items"]) or len(listings) == 1]
    for n, (query, items) in enumerate(shown or [(listings[0][0], [])]):
        if items or output in ("json", "yaml"):
            _say_apart(n, show_objects(query.kind, items, output))
        else:
            where = f" in namespace {query.namespace}" if query.kind.namespaced and query.namespace else ""
            say(f"No {query.kind.plural} found{where}.")


def _say_apart(n: int, text: str) -> None:
    """The first at once, each other one after an empty line."""
    if n:
        say()
    say(text)


def _list_of(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


@click.command("describe")
@click.argument("words", nargs=-1, required=True, metavar="KIND NAME", shell_complete=complete_words)
@namespace_option
@click.pass_obj
def describe_command(peers: Peers, words: tuple[str, ...], namespace: str) -> None:
    """Show one object with all that is known about it.

    For a node, this includes its merged strategies, and which strategy set each field.

    \b
    Example:
      j10ce-qos describe node host-1
      j10ce-qos describe qosprofile ls
      j10ce-qos describe minimalreservationpolicy payments/db
    """
    from j10ce.cli.fleet.describe import describe
    from j10ce.cli.fleet.nodes import describe_node
    from j10ce.cli.fleet.strategy import strategy_of

    for n, (kind, name) in enumerate(kinds_and_names(words)):
        if not name:
            raise click.UsageError(f"name what to describe: `j10ce-qos get {kind.plural}` lists them")
        obj = fetch(peers, kind, namespace, name)
        of_node = kind.name == "NodeQoS"
        _say_apart(n, describe_node(obj, strategy_of(peers.api(), obj)) if of_node else describe(kind, obj))


class Selection(NamedTuple):
    kind: Kind
    namespace: str | None  # None: all
    selector: str

    @property
    def path(self) -> str:
        return path(self.kind, self.namespace)


def fetch(peers: Peers, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    """One object; raises NotFound, which names what may have been meant."""
    with suggesting(peers, kind, namespace, name):
        return _fetch(peers, kind, *apart(kind, namespace, name))


def _fetch(peers: Peers, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    if kind.name != "Hold" or not peers.of_host(kind):
        obj: dict[str, Any] = peers.for_kind(kind).get(path(kind, namespace, name_of(kind, name)))
        return obj
    for hold in _list_host(peers, Selection(kind, namespace, ""))["items"]:
        if hold["metadata"]["name"] == name:
            return dict(hold)
    raise NotFound(f"there is no hold {namespace}/{name} in force on this host")


def _query(peers: Peers, kind: Kind, namespace: str | None, everywhere: bool, selector: str) -> Selection:
    where = None if everywhere else namespace or (None if peers.of_host(kind) else "default")
    return Selection(kind, where, selector)


def _list(peers: Peers, query: Selection) -> dict[str, Any]:
    return _list_host(peers, query) if peers.of_host(query.kind) else _list_api(peers, query)


def _list_api(peers: Peers, query: Selection) -> dict[str, Any]:
    asked = {"labelSelector": query.selector} if query.selector else {}
    listing: dict[str, Any] = peers.api().get(query.path, **asked)
    return listing


def _list_host(peers: Peers, query: Selection) -> dict[str, Any]:
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


def _stream(peers: Peers, query: Selection, listing: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    since = listing["metadata"]["resourceVersion"]
    asked = {"labelSelector": query.selector} if query.selector else {}
    while True:  # the server ends a watch after an hour; it goes on from where it was
        for event in peers.api().stream(query.path, watch="1", allowWatchBookmarks="1", resourceVersion=since, **asked):
            if event["type"] == "ERROR":
                raise QosError(f"the watch ended: {event['object'].get('message')}; start it again")
            since = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                yield event["type"].lower(), event["object"]


def _poll(peers: Peers, query: Selection, listing: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
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
            change = {"event": event, "object": without_owners(obj)}
            text = json.dumps(change, ensure_ascii=False) if style == "json" else f"---\n{dump(change, 'yaml')}"
            say(Verbatim(text))
        return
    lines = [["EVENT   ", *headings(kind, style)], *([event, *cells(kind, o, style)] for event, o in first)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    say(table(lines[0], lines[1:]))
    for event, obj in changes:
        say(table([event, *cells(kind, obj, style)], [], least=widths))
