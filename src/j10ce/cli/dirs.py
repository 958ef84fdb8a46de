"""Where the files of this host's agent are: by the agent's own rule, so that both always agree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from j10ce.agent.config import config_folder, default_dirs, load
from j10ce.cli.output import warn
from j10ce.errors import Denied, Invalid
from j10ce.host import child

SYSTEM_RUN = Path("/run/j10ce-qos")


class Dirs(NamedTuple):
    run: Path
    state: Path
    config: Path

    @classmethod
    def here(cls, environ: Mapping[str, str] = os.environ) -> Dirs:
        """The agent this user may talk to: the system's where allowed, else the user's own."""
        config = config_folder(environ)
        run, state = _configured(config, environ)
        if os.geteuid() and "J10CE_RUN_DIR" not in environ and os.access(SYSTEM_RUN / "agent.sock", os.W_OK):
            run = SYSTEM_RUN
        return cls(run, state, config)

    @property
    def socket(self) -> Path:
        return self.run / "agent.sock"

    @property
    def token(self) -> Path:
        return self.run / "token"

    @property
    def kubeconfig(self) -> Path:
        return self.run / "kubeconfig"

    def roots_own(self, way_in: str = "use sudo, or join group j10ce") -> str:
        """What a user hears who finds nothing while root runs one here; empty where root does not, or is the user."""
        if not os.geteuid() or self.run == SYSTEM_RUN or not (SYSTEM_RUN / "agent.sock").exists():
            return ""
        return f"root runs one on this host: {way_in}"

    def make(self) -> None:
        """Raises Denied where this user may not."""
        try:
            self.run.mkdir(mode=0o755, parents=True, exist_ok=True)
            self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        except PermissionError as e:
            way_out = "set HOME, or name folders of your own with J10CE_RUN_DIR and J10CE_STATE_DIR"
            raise Denied(f"{e.filename}: this user may not make folders there; {way_out}") from e

    def environ(self) -> dict[str, str]:
        """What a child of ours needs to agree with us on places."""
        places = {"J10CE_RUN_DIR": self.run, "J10CE_STATE_DIR": self.state, "J10CE_CONFIG_DIR": self.config}
        return child.environ(os.environ) | {k: str(v) for k, v in places.items()}


def _configured(config: Path, environ: Mapping[str, str]) -> tuple[Path, Path]:
    try:
        settings = load(config, environ)
        return Path(settings.run_dir), Path(settings.state_dir)
    except Invalid:
        # A broken file must not keep anyone from `disarm`.
        warn(f"{config} has mistakes, so usual places are assumed; `j10ce-qos config check` tells them")
        run, state = default_dirs(environ)
        return Path(environ.get("J10CE_RUN_DIR") or run), Path(environ.get("J10CE_STATE_DIR") or state)
