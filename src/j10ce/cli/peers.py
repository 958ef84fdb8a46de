"""Who a command talks to, and the options and completions that commands share."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import click

from j10ce.cli import accounts as kubeconfig
from j10ce.cli.accounts import Account
from j10ce.cli.client import Client
from j10ce.cli.dirs import Dirs
from j10ce.cli.output import FORMATS, warn
from j10ce.cli.paths import path
from j10ce.errors import Denied, Finding, Invalid, QosError, Unreachable
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.knob import KNOBS
from j10ce.model.quantity import Duration
from j10ce.model.text.near import near, one_of

ALIASES = {"node": "nodeqoses", "nodes": "nodeqoses"}  # in our API there is no other node
FOREIGN = {"pod": "workloads", "pods": "workloads", "policies": "minimalreservationpolicies", "policy": "mrp"}
COMPLETION_S = 2.0  # nobody waits longer for a Tab
REVERT_S = 120.0  # thousands of settings take their time


class Peers:
    """The agent of this host and the API; found by themselves unless named.

    `server` may list several addresses, separated by commas; `kubeconfig` is a file that names one.
    """

    def __init__(
        self,
        server: str | None = None,
        token_file: str | None = None,
        ca_file: str | None = None,
        kubeconfig: str | None = None,
    ) -> None:
        self.server, self.token_file, self.ca_file, self.kubeconfig = server, token_file, ca_file, kubeconfig

    @cached_property
    def dirs(self) -> Dirs:
        """Found when first needed: `config check` has to work where the configuration is broken."""
        return Dirs.here()

    def agent(self, timeout: float = 30.0) -> Client:
        return Client(f"unix:{self.dirs.socket}", timeout=timeout, absent=self.dirs.roots_own())

    def agent_answers(self) -> bool:
        try:
            self.agent().get("/healthz")
        except Unreachable:
            return False
        return True

    def api(self) -> Client:
        account = self.account()
        return Client(account.server, token=account.token, ca=account.ca, certificate=account.certificate)

    def account(self) -> Account:
        """The API that --server or --kubeconfig names, the one that `up` on this host wrote down, or the user's own."""
        if not self.server:
            self._refuse_unused("--token-file", self.token_file)
            self._refuse_unused("--ca-file", self.ca_file)
            return self._kept()
        if self.token_file and os.stat(self.token_file).st_mode & 0o077:
            warn(f"{self.token_file} can be read by others; chmod 600 it")
        token, ca = (Path(f).read_text() if f else "" for f in (self.token_file, self.ca_file))
        if not token:
            with suppress(Unreachable):
                kept = self._kept()
                if set(self.server.split(",")) <= set(kept.server.split(",")):  # a token goes nowhere else
                    return kept._replace(server=self.server, ca=ca or kept.ca)
        return Account(self.server, token.strip(), ca)

    @staticmethod
    def _refuse_unused(option: str, value: str | None) -> None:
        if value:
            hint = "give --server too, or leave it out"
            raise Invalid([Finding(option, value, "counts with --server alone", hint)], "option")

    def _kept(self) -> Account:
        if self.kubeconfig:
            return kubeconfig.read(Path(self.kubeconfig))
        for file in kubeconfig.find(self.dirs.kubeconfig, os.environ):
            try:
                return kubeconfig.read(file)
            except FileNotFoundError:
                continue
            except PermissionError:
                raise Denied(f"{file} is not yours to read; use sudo, or be the user who runs `up`") from None
        if elsewhere := self.dirs.roots_own("use sudo"):
            raise Denied(f"no control plane of yours; {elsewhere}")
        raise Unreachable("no control plane on this host; start one with `j10ce-qos up`, or give --server")

    def revert(self, force: bool) -> Any:
        """Through the agent; straight from the journal where none runs."""
        try:
            return self.agent(timeout=REVERT_S).post("/v1/revert", {"force": force})
        except Unreachable:
            from j10ce.agent.revert_offline import revert_offline

            return revert_offline(self.dirs, force=force)

    def of_host(self, kind: Kind) -> bool:
        """Workloads and holds are the host's own knowledge: its agent lists them with or without a control plane."""
        return not (self.server or self.kubeconfig) and (not kind.stored or kind.name == "Hold")

    def for_kind(self, kind: Kind) -> Client:
        return self.agent() if self.of_host(kind) else self.api()

    def listed(self, kind: Kind, timeout_s: float = 30.0) -> list[dict[str, Any]]:
        """All objects of a kind, of every namespace, from whoever knows them."""
        peer = self.for_kind(kind)
        peer.timeout = timeout_s
        holds_here = kind.name == "Hold" and self.of_host(kind)
        listing = peer.get("/v1/holds" if holds_here else path(kind, None))
        return list(listing["items"])


class Subcommands(click.Group):
    """Its list of commands says in whole sentences what they do, where click would cut them off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(self.commands[name].help or "")) for name in self.list_commands(ctx)])


def _sentence(text: str) -> str:
    """The first paragraph of a help, on one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of objects after the word of a kind; of workloads where a command takes no other kind."""
    typed = ctx.params.get("kind") or next(iter(ctx.params.get("words") or ()), "workloads")
    return _names(str(typed), incomplete)


def complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """A kind first, then its names."""
    return (complete_names if ctx.params.get("words") else complete_kinds)(ctx, param, incomplete)


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [k.plural for k in KINDS.values() if k.plural.startswith(incomplete)]


def complete_knobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [k for k in KNOBS if k.startswith(incomplete)]


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Those of the API, or the built-in ones where there is none."""
    from j10ce.policy.profiles import builtin

    names = [p.metadata.name for p in builtin() if p.metadata.name.startswith(incomplete)]
    return _names("qosprofiles", incomplete) or names


def _names(kind: str, incomplete: str) -> list[str]:
    try:
        listed = Peers().listed(find_kind(kind), COMPLETION_S)
    except QosError:
        return []  # completion offers what it can; the command itself reports
    return [name for o in listed if (name := o["metadata"]["name"]).startswith(incomplete)]


def find_kind(text: str) -> Kind:
    """A kind by its name, plural or short name, in any case; a node is its NodeQoS."""
    wanted = ALIASES.get(text.lower(), text.lower())
    spelled = {name: kind for kind in KINDS.values() for name in (kind.plural, kind.name.lower(), *kind.short)}
    if wanted in spelled:
        return spelled[wanted]
    meant = FOREIGN.get(wanted) or near(text, (*(k.plural for k in KINDS.values()), *ALIASES)) or near(text, spelled)
    hint = f"{f'did you mean {meant}? ' if meant else ''}use one of {kinds_for_people()}"
    raise Invalid([Finding("kind", text, "unknown kind", hint)], "kind")


def kinds_for_people() -> str:
    """Every kind with the short names that are typed for it."""
    shorts = {k.plural: [*k.short, *(a for a, plural in ALIASES.items() if plural == k.plural)] for k in KINDS.values()}
    return ", ".join(f"{plural} ({', '.join(short)})" for plural, short in shorts.items())


class OneOf(click.Choice[str]):
    """One of some words; whoever mistypes one hears which was meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        return f"{value!r}: {one_of(str(value), self.choices)}"


class Whole(click.IntRange):
    """A whole number, both ends included."""

    name = "number"

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        super().fail(f"{message.rstrip('.')}; write a whole number from {self.min} to {self.max}", param, ctx)


class Number(click.FloatRange):
    """The same with a fraction."""

    name = "number"

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        super().fail(f"{message.rstrip('.')}; write a number from {self.min:g} to {self.max:g}", param, ctx)


namespace_option = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace.")
all_namespaces = click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
files_option = click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="File, directory, or - for standard input."
)
output_option = click.option("-o", "--output", type=OneOf(FORMATS), default="table", show_default=True, help="Format.")


def seconds(option: str, text: str) -> float:
    """Of an option that takes a duration; raises Invalid, which names the option."""
    try:
        return Duration.parse(text).seconds
    except Invalid as e:
        raise Invalid([f._replace(path=option) for f in e.findings], "option") from None
