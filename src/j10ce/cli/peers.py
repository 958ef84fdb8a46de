"""Who a command talks to, and the options and completions that commands share."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import click

from j10ce.cli.client import Client
from j10ce.cli.dirs import Dirs
from j10ce.cli.output import FORMATS
from j10ce.errors import Finding, Invalid, QosError, Unreachable
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import GROUP, VERSION
from j10ce.model.knob import KNOBS

COMPLETION_S = 2.0  # nobody waits longer for a Tab


class Peers:
    """The agent of this host and the API; found by themselves unless named."""

    def __init__(self, server: str | None = None, token_file: str | None = None) -> None:
        self.server = server
        self.token_file = token_file

    @cached_property
    def dirs(self) -> Dirs:
        """Found when first needed: `config check` has to work where the configuration is broken."""
        return Dirs.here()

    def agent(self, timeout: float = 30.0) -> Client:
        return Client(f"unix:{self.dirs.socket}", timeout=timeout)

    def agent_answers(self) -> bool:
        try:
            self.agent().get("/healthz")
        except Unreachable:
            return False
        return True

    def api(self) -> Client:
        """The API that --server names, or the one that `up` on this host wrote down."""
        if self.server:
            token = Path(self.token_file).read_text().strip() if self.token_file else ""
            return Client(self.server, token=token)
        try:
            server, token = read_kubeconfig(self.dirs.kubeconfig)
        except FileNotFoundError:
            raise Unreachable(
                "no control plane on this host; start one with `j10ce-qos up`, or give --server"
            ) from None
        except PermissionError:
            raise Unreachable(f"{self.dirs.kubeconfig} is not yours to read; run as the user who runs `up`") from None
        return Client(server, token=token)

    def revert(self, force: bool) -> Any:
        """Through the agent; straight from the journal where none runs."""
        try:
            return self.agent(timeout=120.0).post("/v1/revert", {"force": force})
        except Unreachable:
            from j10ce.agent.retire import revert_offline

            return revert_offline(self.dirs, force=force)

    def of_host(self, kind: Kind) -> bool:
        """Workloads and holds are the host's own knowledge: its agent lists them with or without a control plane."""
        return not self.server and (not kind.stored or kind.name == "Hold")

    def for_kind(self, kind: Kind) -> Client:
        return self.agent() if self.of_host(kind) else self.api()


def read_kubeconfig(path: Path) -> tuple[str, str]:
    """(server, token) of the current context."""
    import yaml

    told: dict[str, Any] = yaml.safe_load(path.read_text())
    return str(told["clusters"][0]["cluster"]["server"]), str(told["users"][0]["user"]["token"])


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [k.plural for k in KINDS.values() if k.plural.startswith(incomplete)]


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _names(str(ctx.params.get("kind") or "workloads"), incomplete)


def complete_knobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [k for k in KNOBS if k.startswith(incomplete)]


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Those of the API, or the built-in ones where there is none."""
    from j10ce.policy.profiles import builtin

    names = [p.metadata.name for p in builtin() if p.metadata.name.startswith(incomplete)]
    return _names("qosprofiles", incomplete) or names


def _names(kind: str, incomplete: str) -> list[str]:
    try:
        found = find_kind(kind)
        peer = Peers().for_kind(found)
        peer.timeout = COMPLETION_S
        plural = "/v1/holds" if found.name == "Hold" else f"/apis/{GROUP}/{VERSION}/{found.plural}"
        listing = peer.get(plural)
    except QosError:
        return []  # completion offers what it can; the command itself reports
    return [n for o in listing["items"] if (n := o["metadata"]["name"]).startswith(incomplete)]


def find_kind(text: str) -> Kind:
    """A kind by its name, plural or short name, in any case."""
    wanted = text.lower()
    for kind in KINDS.values():
        if wanted in (kind.name.lower(), kind.plural, *kind.short):
            return kind
    allowed = "use one of " + ", ".join(k.plural for k in KINDS.values())
    raise Invalid([Finding("kind", text, "unknown kind", allowed)], "kind")


namespace_option = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace.")
all_namespaces = click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
output_option = click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="Format."
)
