"""certs: certificates for the control plane and its clients, from an authority of our own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from j10ce.agent.config import config_folder
from j10ce.cli.client import address
from j10ce.cli.fleet.tokens import ROLES, add_known, expiry, life_s
from j10ce.cli.output import say, table, warn
from j10ce.cli.peers import OneOf, Subcommands
from j10ce.errors import Finding, Invalid, NotFound, Unsupported

if TYPE_CHECKING:
    from j10ce.cli.fleet.authority import Authority

SOON_S = 30 * 86400.0
MOST_NAME = 64  # characters of a common name, by X.509

folder_option = click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder.  [default: /etc/j10ce-qos/pki]"
)
renew_option = click.option("--renew", is_flag=True, help="Replace what is there, key included.")


@click.group("certs", cls=Subcommands)
def certs_command() -> None:
    """Make certificates for the control plane and its clients, signed by an authority of your own.

    \b
    Example:
      j10ce-qos certs init
      j10ce-qos certs server --host cp1.example --host 10.0.0.1
      j10ce-qos certs kubeconfig --server https://cp1.example:7443
    """


@certs_command.command("init")
@folder_option
@click.option("--name", default="j10ce-qos", show_default=True, help="Of the authority.")
@click.option("--for", "life", default="3650d", show_default=True, help="How long it is good for.")
def init_command(folder: Path | None, name: str, life: str) -> None:
    """Make the authority: ca.crt for everyone, ca.key for nobody but you.

    \b
    Example:
      j10ce-qos certs init --dir ./pki
    """
    authority = _authority(folder)
    authority.create(name, life_s(life))
    say(f"{authority.certificate}: give it to agents and clients; keep {authority.folder / 'ca.key'} to yourself")


@certs_command.command("server")
@folder_option
@click.option("--host", "hosts", multiple=True, help="Name or address that clients use; may be given again.")
@click.option("--for", "life", default="397d", show_default=True, help="How long it is good for.")
@renew_option
def server_command(folder: Path | None, hosts: tuple[str, ...], life: str, renew: bool) -> None:
    """Make server.crt and server.key for the controller-manager; it takes up a renewed pair by itself.

    \b
    Example:
      j10ce-qos certs server --host cp1.example --host 10.0.0.1
      j10ce-qos certs server --renew
    """
    from j10ce.manager.access.signing import CertificateWish

    authority = _authority(folder)
    names = hosts or (authority.hosts("server") if renew else ())
    if not names:
        raise Invalid([Finding("--host", None, "missing", "name what clients will call the server")], "option")
    authority.issue("server", CertificateWish(names[0], life_s(life), names), renew=renew)
    say(f"{authority.folder / 'server.crt'}: for {', '.join(names)}")


@certs_command.command("client")
@click.argument("name")
@click.option("--role", type=OneOf(ROLES), required=True, help="What its owner may do.")
@folder_option
@click.option("--for", "life", default="90d", show_default=True, help="How long it is good for.")
@renew_option
def client_command(name: str, role: str, folder: Path | None, life: str, renew: bool) -> None:
    """Make NAME.crt and NAME.key, for a manager that runs with --client-ca; it cannot be revoked: let it expire soon.

    \b
    Example:
      j10ce-qos certs client alice --role editor
    """
    from j10ce.manager.access.signing import CertificateWish
    from j10ce.manager.identity import Role, caller_of

    if not name.replace("-", "").replace(".", "").isalnum() or name in ("ca", "server"):
        raise Invalid([Finding("NAME", name, "not a name", "use letters, digits, '-' and '.'")], "argument")
    if len(name) > MOST_NAME:
        raise Invalid([Finding("NAME", name, f"{len(name)} characters", f"at most {MOST_NAME}")], "argument")
    if caller_of(name, Role(role), name if role == Role.NODE.value else "") is None:
        hint = "such names are those of nodes, bootstrap tokens and the manager; choose another"
        raise Invalid([Finding("NAME", name, f"not the name of a caller of role {role}", hint)], "argument")
    authority = _authority(folder)
    authority.issue(name, CertificateWish(name, life_s(life), role=role), renew=renew)
    say(f"{authority.folder / f'{name}.crt'}: {name}, {role}")


@certs_command.command("kubeconfig")
@click.option("--server", required=True, help="Address of the API.")
@click.option("--user", default="admin", show_default=True, help="Name of the token.")
@click.option("--role", type=OneOf(ROLES), default="admin", show_default=True, help="What it may do.")
@click.option("--for", "life", default="365d", show_default=True, help="How long the token is good for.")
@click.option("--auth", type=click.Path(dir_okay=False, path_type=Path), help="Auth file.  [default: DIR/auth.yaml]")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File.  [default: DIR/kubeconfig]")
@folder_option
def kubeconfig_command(
    server: str, user: str, role: str, life: str, auth: Path | None, output: Path | None, folder: Path | None
) -> None:
    """Make a token; its hash goes into the manager's auth file, the token itself into a kubeconfig with the authority.

    \b
    Example:
      j10ce-qos certs kubeconfig --server https://cp1.example:7443
    """
    from j10ce.daemon.secret_files import write_kubeconfig

    for each in server.split(","):
        address(each)
    where = folder or config_folder() / "pki"
    auth, output = auth or where / "auth.yaml", output or where / "kubeconfig"
    authority = where / "ca.crt"
    if not authority.exists():
        raise NotFound(f"there is no {authority}; `j10ce-qos certs init` makes an authority")
    token = add_known(auth, user, {"role": role, "expires": expiry(life)})
    write_kubeconfig(output, server, token, ca=authority)
    say(f"{output}: {user}, {role}; start the manager with --auth {auth}")


@certs_command.command("show")
@folder_option
def show_command(folder: Path | None) -> None:
    """List the certificates in a folder: who they are for and when they expire.

    \b
    Example:
      j10ce-qos certs show
    """
    authority = _authority(folder)
    certificates = authority.facts()
    say(
        table(
            ["FILE", "SUBJECT", "NAMES", "EXPIRES"],
            [[f.file, f.subject, f.names, _day(f.expires)] for f in certificates],
        )
    )
    for facts in certificates:
        left_s = facts.expires.timestamp() - _wall()
        if left_s < SOON_S:
            warn(f"{facts.file} {'ended' if left_s < 0 else 'ends'} on {_day(facts.expires)}: renew it")


def _authority(folder: Path | None) -> Authority:
    try:
        from j10ce.cli.fleet.authority import Authority
    except ImportError:
        raise Unsupported("certs", needs="the package `cryptography`: pip install 'j10ce-qos[fleet]'") from None
    return Authority(folder or config_folder() / "pki", _wall())


def _wall() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


def _day(moment: object) -> str:
    return f"{moment:%Y-%m-%d}"
