"""rollout: how far a change of a policy has come, its history, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import click

from j10ce.cli.client import Client
from j10ce.cli.output import dump, say, table
from j10ce.cli.paths import apart, name_of, path
from j10ce.cli.peers import Peers, Subcommands, find_kind, namespace_option
from j10ce.errors import Conflict, Finding, Invalid, NotFound
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.text.cells import dig

ROLLED_OUT: Final = ("QoSProfile", "MinimalReservationPolicy", "NodeStrategy")
HELD_UP: Final = ("Stopped", "Paused", "NotAdmitted", "NoCanary")
AT_REST: Final = ("Complete", "Canary", *HELD_UP)


# `mrp/db`, `mrp db` and `mrp payments/db`, as `describe` and kubectl take it
policy_argument = click.argument(
    "policy", metavar="KIND/NAME", nargs=-1, required=True, callback=lambda _, __, words: "/".join(words)
)


@click.group("rollout", cls=Subcommands)
def rollout_command() -> None:
    """Follow, hold, resume and undo changes of profiles, reservations and strategies of nodes.

    \b
    Example:
      j10ce-qos rollout status mrp/db --watch
      j10ce-qos rollout undo mrp/db
    """


@rollout_command.command("status")
@policy_argument
@namespace_option
@click.option("-w", "--watch", is_flag=True, help="Wait until the nodes that should have it do, or it stopped.")
@click.pass_obj
def status(peers: Peers, policy: str, namespace: str, watch: bool) -> None:
    """Show how far a change has come; exits 1 when it stopped, is paused, not admitted, or for no node.

    \b
    Example:
      j10ce-qos rollout status qosprofile/ls
      j10ce-qos rollout status mrp/db -n payments --watch
      j10ce-qos rollout status mrp payments/db
    """
    it = Policy.find(peers, policy, namespace)
    printed = ""
    for obj in it.changes() if watch else [it.get()]:
        reason, line = _progress(it, obj)
        if line != printed:
            say(line)
        printed = line
        if not watch or reason in AT_REST:
            raise SystemExit(1 if reason in HELD_UP or _is_paused(obj) else 0)


@rollout_command.command("history")
@policy_argument
@namespace_option
@click.option("--revision", type=int, help="Show the spec of this one.")
@click.pass_obj
def history(peers: Peers, policy: str, namespace: str, revision: int | None) -> None:
    """List the kept revisions of a policy, and in what each differs from the one before.

    \b
    Example:
      j10ce-qos rollout history mrp/db
      j10ce-qos rollout history mrp/db --revision 3
    """
    it = Policy.find(peers, policy, namespace)
    obj = it.get()
    kept = it.revisions(obj)
    if revision is not None:
        say(dump(_numbered(kept, revision)["data"], "yaml"))
        return
    generation, stable = obj["metadata"]["generation"], dig(obj, "status.rollout.stable")
    rows, before = [], None
    for r in kept:
        states = [word for word, number in (("present", generation), ("stable", stable)) if number == r["revision"]]
        rows.append((r["revision"], r["metadata"].get("creationTimestamp"), states, _differences(before, r["data"])))
        before = r["data"]
    say(table(["REVISION", "CREATED", "STATE", "DIFFERS IN"], rows))


@rollout_command.command("undo")
@policy_argument
@namespace_option
@click.option("--to-revision", type=int, help="This one; default: the last that held everywhere, else the one before.")
@click.pass_obj
def undo(peers: Peers, policy: str, namespace: str, to_revision: int | None) -> None:
    """Write the spec of an earlier revision again, as a revision of its own.

    \b
    Example:
      j10ce-qos rollout undo mrp/db
      j10ce-qos rollout undo mrp/db --to-revision 3
    """
    it = Policy.find(peers, policy, namespace)
    obj = it.get()
    kept = it.revisions(obj)
    target = _numbered(kept, to_revision) if to_revision is not None else _before(kept, obj)
    done = it.edit(lambda _: dict(target["data"]))
    if done is None:
        say(f"{it.title} unchanged: revision {target['revision']} says the same")
    else:
        say(f"{it.title} is what it was in revision {target['revision']}, as revision {done['metadata']['generation']}")


@rollout_command.command("pause")
@policy_argument
@namespace_option
@click.pass_obj
def pause(peers: Peers, policy: str, namespace: str) -> None:
    """Let no further node take the present revision, or the next one.

    \b
    Example:
      j10ce-qos rollout pause mrp/db
    """
    it = Policy.find(peers, policy, namespace)
    it.edit(lambda obj: {**obj["spec"], "rollout": {**obj["spec"].get("rollout", {}), "paused": True}})
    say(f"{it.title} paused")


@rollout_command.command("resume")
@policy_argument
@namespace_option
@click.pass_obj
def resume(peers: Peers, policy: str, namespace: str) -> None:
    """Go on with a rollout that is paused, or try again where it stopped.

    \b
    Example:
      j10ce-qos rollout resume mrp/db
    """
    it = Policy.find(peers, policy, namespace)
    say(f"{it.title} resumed" if it.edit(_resumed) else f"{it.title} is neither paused nor stopped")


class Policy(NamedTuple):
    """One policy of the API."""

    api: Client
    kind: Kind
    namespace: str
    name: str

    @classmethod
    def find(cls, peers: Peers, text: str, namespace: str) -> Policy:
        kind_name, _, name = text.partition("/")
        kind = find_kind(kind_name)
        if kind.name not in ROLLED_OUT or not name:
            hint = "write it as qosprofile/NAME, minimalreservationpolicy/NAME or nodestrategy/NAME"
            raise Invalid([Finding("KIND/NAME", text, "not a policy", hint)], "argument")
        namespace, name = apart(kind, namespace, name)
        return cls(peers.api(), kind, namespace, name_of(kind, name))

    @property
    def title(self) -> str:
        return f"{self.kind.name.lower()}/{self.name}"

    @property
    def path(self) -> str:
        return path(self.kind, self.namespace, self.name)

    def get(self) -> dict[str, Any]:
        return dict(self.api.get(self.path))

    def edit(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any] | None:
        """Write the spec that `change` makes of the policy; None when it says the same already.

        A status that was written meanwhile is no conflict, another spec is.
        """
        obj = first = self.get()
        while True:
            spec = change(obj)
            if spec == obj["spec"]:
                return None
            try:
                return dict(self.api.put(self.path, {**obj, "spec": spec}))
            except Conflict:
                obj = self.get()
                if obj["metadata"]["generation"] != first["metadata"]["generation"]:
                    raise

    def revisions(self, obj: dict[str, Any]) -> list[dict[str, Any]]:
        """Those that are kept, oldest first."""
        where = self.namespace if self.kind.namespaced else "j10ce-system"
        listed = self.api.get(path(KINDS["PolicyRevision"], where))["items"]
        uid = obj["metadata"]["uid"]
        mine = [r for r in listed if any(o["uid"] == uid for o in r["metadata"].get("ownerReferences", ()))]
        return sorted(mine, key=lambda r: int(r["revision"]))

    def changes(self) -> Iterator[dict[str, Any]]:
        """The policy as it is, then each of its changes."""
        scope = path(self.kind, self.namespace)
        while True:  # the server ends a watch after an hour
            obj = self.get()
            yield obj
            since, only = obj["metadata"]["resourceVersion"], f"metadata.name={self.name}"
            for event in self.api.stream(scope, watch="1", resourceVersion=since, fieldSelector=only):
                if event["type"] == "DELETED":
                    raise NotFound(f"{self.title} was deleted")
                if event["type"] == "ERROR":
                    break
                yield event["object"]


def _progress(it: Policy, obj: dict[str, Any]) -> tuple[str, str]:
    """(reason of the condition, what to say). What nobody has judged yet is on its way."""
    generation = obj["metadata"]["generation"]
    if dig(obj, "status.observedGeneration") != generation:
        return "", f"{it.title}: revision {generation} has not been looked at yet"
    progress = [c for c in dig(obj, "status.conditions") or [] if c["type"] == "Progressing"]
    if progress:
        waits = "; paused: the next change waits for `rollout resume`" if _is_paused(obj) else ""
        rest = waits if progress[0]["reason"] == "Complete" else ""
        return progress[0]["reason"], f"{it.title} {progress[0]['reason']}: {progress[0].get('message', '')}{rest}"
    nodes = {"wanted": 0, "applied": 0, **(dig(obj, "status.nodes") or {})}
    having = f"{nodes['applied']} of {nodes['wanted']} nodes obey revision {generation}"
    return "Complete" if nodes["applied"] >= nodes["wanted"] else "", f"{it.title}: {having}"


def _is_paused(obj: dict[str, Any]) -> bool:
    return bool(dig(obj, "spec.rollout.paused"))


def _resumed(obj: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = obj["spec"]
    rollout = {k: v for k, v in spec.get("rollout", {}).items() if k != "paused"}
    stopped = dig(obj, "status.rollout.stopped")
    if stopped and dig(obj, "status.rollout.revision") == obj["metadata"]["generation"]:
        rollout["attempt"] = rollout.get("attempt", 0) + 1
    return {**spec, "rollout": rollout} if "rollout" in spec else spec


def _before(kept: list[dict[str, Any]], obj: dict[str, Any]) -> dict[str, Any]:
    """The stable revision, or the newest one that says something else than the present one, `rollout` aside."""
    others = [r for r in kept if _change(r["data"]) != _change(obj["spec"])]
    stable = [r for r in others if r["revision"] == dig(obj, "status.rollout.stable")]
    if not others:
        raise NotFound("there is no earlier revision that says anything else")
    return (stable or others)[-1]


def _change(spec: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in spec.items() if k != "rollout"}


def _numbered(kept: list[dict[str, Any]], number: int) -> dict[str, Any]:
    for revision in kept:
        if revision["revision"] == number:
            return revision
    there = ", ".join(str(r["revision"]) for r in kept) or "none"
    raise NotFound(f"revision {number} is not kept; there is {there}")


def _differences(before: dict[str, Any] | None, spec: dict[str, Any]) -> list[str]:
    if before is None:
        return []
    return [key for key in sorted({*before, *spec}) if before.get(key) != spec.get(key)]
