"""Where this host's files of ours are: as configured, else the system's places for root and the user's for others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from j10ce.agent.config import CONFIG_DIR, AgentConfig, load


class Dirs(NamedTuple):
    run: Path
    state: Path
    config: Path

    @classmethod
    def here(cls, environ: Mapping[str, str] = os.environ) -> Dirs:
        config = Path(environ.get("J10CE_CONFIG_DIR") or CONFIG_DIR)
        run, state = _defaults(environ)
        if any(config.glob("*.yaml")):
            told = load(config, environ)
            run = Path(told.run_dir) if told.run_dir != AgentConfig().run_dir else run
            state = Path(told.state_dir) if told.state_dir != AgentConfig().state_dir else state
        return cls(Path(environ.get("J10CE_RUN_DIR") or run), Path(environ.get("J10CE_STATE_DIR") or state), config)

    @property
    def socket(self) -> Path:
        return self.run / "agent.sock"

    @property
    def token(self) -> Path:
        return self.run / "token"

    @property
    def kubeconfig(self) -> Path:
        return self.run / "kubeconfig"

    def environ(self) -> dict[str, str]:
        """What a child of ours needs to agree with us."""
        told = {"J10CE_RUN_DIR": self.run, "J10CE_STATE_DIR": self.state, "J10CE_CONFIG_DIR": self.config}
        return {**os.environ, **{k: str(v) for k, v in told.items()}}

    def make(self) -> None:
        self.run.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)


def _defaults(environ: Mapping[str, str]) -> tuple[Path, Path]:
    if os.geteuid() == 0:
        return Path("/run/j10ce-qos"), Path("/var/lib/j10ce-qos")
    home = Path(environ.get("HOME") or "/nonexistent")
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
    # Without a session there is no runtime directory; the state directory serves, it is the user's own.
    state = Path(environ.get("XDG_STATE_HOME") or home / ".local/state") / "j10ce-qos"
    return (runtime / "j10ce-qos" if runtime.is_dir() else state / "run"), state
