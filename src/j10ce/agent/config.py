"""What an operator may set: `/etc/j10ce-qos/*.yaml`, merged in the order of their names, then the environment.

Reading is strict, and raises every finding at once. Nothing here is read again while the agent runs, except on SIGHUP.
"""

from __future__ import annotations

import importlib
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import field

from j10ce.errors import Finding, Invalid
from j10ce.http.addresses import confidential
from j10ce.model import schema
from j10ce.model.kinds import Strict
from j10ce.model.quantity import Duration
from j10ce.model.text.near import one_of
from j10ce.policy.validation import syntax

if TYPE_CHECKING:
    from j10ce.dialects.koordinator.gates import Switched

CONFIG_DIR: Final = Path("/etc/j10ce-qos")
# Several agents side by side, and tests, differ in these.
ENVIRONMENT: Final = {"J10CE_RUN_DIR": "runDir", "J10CE_STATE_DIR": "stateDir", "J10CE_TOP": "top"}
TOP: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ADDRESS: Final = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\]):(\d{1,5})")
SHORTEST_PERIOD_S: Final = 0.1
KUBE: Final = "kube:"
SERVERS: Final = (
    "https://…, unix:/path or, on loopback, http://…, several with commas; kube: or kube:///path/to/kubeconfig"
)


class AgentConfig(Strict, frozen=True, kw_only=True):
    """Every field has a default: an agent without any file protects the host it runs on."""

    node_name: str = ""  # the host's name when empty
    top: str = "j10ce"  # our group at the top of the cgroup tree
    run_dir: str = ""  # `default_dirs` when empty
    state_dir: str = ""
    period: Duration = Duration(1)
    tree: Literal["auto", "plain", "systemd"] = "auto"
    armed: bool = True
    protect_self: bool = True  # the agent's own cgroup, with a small floor
    drift: Literal["reassert", "yield"] = "reassert"  # what to do when someone else changed our knob
    # http://127.0.0.1:7443, https://…, unix:/path, or several with commas; on Kubernetes kube: inside a pod, or
    # kube:///path/to/kubeconfig; empty: no control plane
    server: str = ""
    token_file: str = ""  # bearer token for `server`
    bootstrap_token_file: str = ""  # enrols this node where token_file is missing
    ca_file: str = ""  # who signed the certificates of `server`; empty: the system's authorities
    kubelet: str = ""  # https://address:10250 or http://127.0.0.1:10255: lists the pods while the API server is away
    daemonset: str = ""  # namespace/name of what runs this agent: once it is deleted, every value goes back
    socket_mode: str = "0660"  # 0666 lets everyone read; writing always needs root or the group
    socket_group: str = "j10ce"
    metrics: str = ""  # loopback address:port that serves /metrics, besides the socket
    koordlet_metrics: bool = False  # also by the names that koordlet's dashboards ask for; they name workloads
    koordlet_feature_gates: str = ""  # of koordlet's --feature-gates: those that are off silence controllers of ours
    controllers: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings per controller
    disabled: tuple[str, ...] = ()  # controllers that stay silent; sensors and back ends of plugins that are not loaded
    dialects: tuple[
        Literal["koordinator", "terway"], ...
    ] = ()  # other systems' labels and annotations that are understood
    log: Literal["debug", "info", "warning", "error"] = "info"


def load(folder: Path, environ: Mapping[str, str] = os.environ) -> AgentConfig:
    """The configuration in force; raises Invalid with every finding of every file."""
    findings: list[Finding] = []
    merged: dict[str, Any] = {}
    for file in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
        try:
            raw = _read(file)
            findings += (_in(file, f) for f in _findings(raw))
            _merge(merged, raw)
        except Invalid as e:
            findings += (_in(file, f) for f in e.findings)
    if findings:
        raise Invalid(findings, "configuration")
    merged |= {key: environ[name] for name, key in ENVIRONMENT.items() if environ.get(name)}
    config = schema.convert(merged, AgentConfig)
    if findings := check(config):
        raise Invalid(findings, "configuration")
    run, state = default_dirs(environ)
    return msgspec.structs.replace(
        config,
        node_name=config.node_name or socket.gethostname().lower(),
        run_dir=config.run_dir or str(run),
        state_dir=config.state_dir or str(state),
        disabled=(*config.disabled, *(name for name in _gates(config).off if _exists(name))),
    )


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the files are: the system's for root, the user's own for others; absolute, as children run elsewhere."""
    named = environ.get("J10CE_CONFIG_DIR")
    if named or os.geteuid() == 0:
        return Path(named or CONFIG_DIR).absolute()
    own = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "/nonexistent", ".config")
    return Path(own, "j10ce-qos").absolute()


def default_dirs(environ: Mapping[str, str] = os.environ) -> tuple[Path, Path]:
    """(run, state): the system's places for root, the user's own for others."""
    if os.geteuid() == 0:
        return Path("/run/j10ce-qos"), Path("/var/lib/j10ce-qos")
    home = Path(environ.get("HOME") or "/nonexistent")
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
    state = Path(environ.get("XDG_STATE_HOME") or home / ".local/state") / "j10ce-qos"
    # Without a session there is no runtime directory; the state directory serves, it is the user's own.
    return (runtime / "j10ce-qos" if runtime.is_dir() else state / "run"), state


def _findings(raw: dict[str, Any]) -> list[Finding]:
    """Every mistake of one file, in its shape and in its values."""
    config, findings = schema.salvage(raw, AgentConfig)
    return [*findings, *(check(config) if config else ())]


def check(config: AgentConfig) -> list[Finding]:
    """What the types cannot say."""
    rows = (
        ("top", config.top, bool(TOP.fullmatch(config.top)), "one name of a-z, 0-9, - and _, at most 63 long"),
        (
            "nodeName",
            config.node_name,
            not config.node_name or not any(syntax.name("nodeName", config.node_name)),
            "a DNS name",
        ),
        ("runDir", config.run_dir, config.run_dir[:1] in ("", "/"), "an absolute path"),
        ("stateDir", config.state_dir, config.state_dir[:1] in ("", "/"), "an absolute path"),
        ("period", str(config.period), config.period.seconds >= SHORTEST_PERIOD_S, f"at least {SHORTEST_PERIOD_S} s"),
        ("socketMode", config.socket_mode, config.socket_mode in ("0600", "0660", "0666"), "0600, 0660 or 0666"),
        (
            "metrics",
            config.metrics,
            not config.metrics or bool(ADDRESS.fullmatch(config.metrics)),
            "a loopback address:port",
        ),
        ("server", config.server, _is_server(config.server), SERVERS),
        ("kubelet", config.kubelet, _is_kubelet(config.kubelet), "https://address:10250"),
        ("daemonset", config.daemonset, config.daemonset.count("/") == bool(config.daemonset), "namespace/name"),
    )
    return (
        [Finding(path, value, "not usable", f"write {hint}") for path, value, ok, hint in rows if not ok]
        + list(_gates(config).findings)
        + [finding for name, raw in config.controllers.items() for finding in _check_controller(name, raw)]
        + [_unknown_controller(f"disabled[{n}]", name) for n, name in enumerate(config.disabled) if not _known(name)]
    )


def _gates(config: AgentConfig) -> Switched:
    """Gates of koordlet; they are read by whoever loads a configuration, not by the CLI."""
    from j10ce.dialects.koordinator.gates import switched

    return switched(config.koordlet_feature_gates)


def gate_notes(config: AgentConfig) -> tuple[str, ...]:
    """Gates that are on and switch nothing here, each with what does its work."""
    return _gates(config).notes


def _check_controller(name: str, raw: dict[str, Any]) -> list[Finding]:
    """Settings of a built-in controller are decoded here; those of a plugin in its own process."""
    from j10ce.control.builtin import BUILTIN  # the CLI imports this module for Dirs alone

    if not _exists(name):
        return [_unknown_controller(f"controllers.{name}", name)]
    if name not in BUILTIN:
        return []
    try:
        schema.convert(raw, BUILTIN[name].Config)
    except Invalid as e:
        return [f._replace(path=f"controllers.{name}.{f.path}".rstrip(".")) for f in e.findings]
    return []


def _exists(controller: str) -> bool:
    """Whether it is built in, or some installed distribution brings it."""
    from j10ce.control.builtin import BUILTIN

    return controller in BUILTIN or controller in _plugins()


def _known(name: str) -> bool:
    """Whether there is something of that name to disable: a controller, or a sensor or back end of a plugin."""
    return _exists(name) or name in _plugins("j10ce.sensors", "j10ce.backends")


def _plugins(*groups: str) -> set[str]:
    from importlib.metadata import entry_points

    return {point.name for group in groups or ("j10ce.controllers",) for point in entry_points(group=group)}


def _unknown_controller(path: str, name: str) -> Finding:
    from j10ce.control.builtin import BUILTIN

    hint = f"{one_of(name, (*BUILTIN, *sorted(_plugins())))}, or install the plugin that brings it"
    return Finding(path, None if path.endswith(name) else name, "no such controller", hint)


def _is_kubelet(text: str) -> bool:
    """Without TLS only on this very host: whoever listens elsewhere could say anything to us."""
    return not text or (text.startswith(("https://", "http://")) and confidential(text))


def _is_server(text: str) -> bool:
    """Without TLS only on this very host: root obeys what it reads there, and sends its token."""
    return (
        not text
        or text == KUBE
        or text.startswith(f"{KUBE}///")
        or all(one.startswith(("http://", "https://", "unix:/")) and confidential(one) for one in text.split(","))
    )


def _read(file: Path) -> dict[str, Any]:
    """One file as plain data. YAML costs 2 MiB, so only an agent that has files imports it."""
    yaml = importlib.import_module("yaml")
    try:
        raw = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise Invalid([Finding("", None, " ".join(str(e).split()))], "configuration") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise Invalid([Finding("", None, "not a mapping", "write settings as `name: value`")], "configuration")
    return {str(key): value for key, value in raw.items()}


def _in(file: Path, finding: Finding) -> Finding:
    return finding._replace(path=f"{file} {finding.path}".rstrip())


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Later files win, mapping by mapping."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
