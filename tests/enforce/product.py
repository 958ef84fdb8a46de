"""The product as a user has it: commands and the agent that they start, on this machine's own kernel."""

from __future__ import annotations

import stat as modes
import time
from pathlib import Path
from typing import Any

from j10ce.cli.client import Client
from j10ce.host.mounts import Hierarchies
from tests.cli.session import Running, Session, cgroup, eventually
from tests.enforce.workbench import PATIENCE_S, stat

# Writable without being settings: counters that a write resets, and files whose content moves by itself.
NO_SETTINGS = ("cgroup.procs", "cgroup.threads", "tasks", "cpuacct.usage", "memory.peak", "memory.swap.peak")
MOVING = (".pressure", "max_usage_in_bytes", "failcnt")


class Product(Session):
    """A session whose commands are measured; `steady` tests share one agent, each with names of its own."""

    def __init__(self, folder: Path, top: str, clone: Path) -> None:
        super().__init__(folder, top, clone)
        self.hierarchies = Hierarchies.discover()
        self.agent = Client(f"unix:{self.run_dir / 'agent.sock'}")

    @property
    def v2(self) -> bool:
        return self.hierarchies.version("memory") == 2

    def adopt(self, path: str, name: str, *words: str) -> None:
        self("adopt", "--cgroup", path, "--name", name, *words)

    def launch(self, name: str, *words: str) -> str:
        """Run `words` (options, --, a command) under the name; the cgroup it got."""
        child = self.start("run", "--name", name, *words)
        said = f"default/{name} in "
        assert eventually(lambda: said in self.output(child) or child.poll() is not None, PATIENCE_S)
        assert said in self.output(child), self.output(child)
        return self.output(child).split(said)[1].split()[0]

    def end(self, *names: str) -> None:
        """End commands started by `launch`, and wait until the agent has let go of them."""
        for child in self.started:
            if child.poll() is None and set(names) & set(map(str, child.args)):  # type: ignore[arg-type]
                child.terminate()
                child.wait(PATIENCE_S)
        assert eventually(lambda: not set(names) & set(self.names()), PATIENCE_S), self.names()

    def names(self) -> list[str]:
        return [w["metadata"]["name"] for w in self.agent.get("/v1/workloads")["items"]]

    def theirs(self, path: str) -> Running:
        """A cgroup that was there before us, in every hierarchy, with a process inside."""
        child = Running(["sleep", "1000"], text=True)
        self.started.append(child)
        for mount in self.hierarchies.in_use().values():
            folder = Path(mount.path)
            for step in path.split("/"):
                self.enable(folder)
                folder /= step
                folder.mkdir(exist_ok=True)
                self.inherit(folder)
            (folder / "cgroup.procs").write_text(str(child.pid))
        self.made += [Path(m.path, path.split("/")[0]) for m in self.hierarchies.in_use().values()]
        return child

    def enable(self, folder: Path) -> None:
        """On cgroup2, children have the files of a controller only when the parent passes it on."""
        control = folder / "cgroup.subtree_control"
        if control.exists():
            has = (folder / "cgroup.controllers").read_text().split()
            control.write_text(" ".join(f"+{c}" for c in ("cpu", "cpuset", "memory") if c in has))

    def inherit(self, folder: Path) -> None:
        """On v1, a fresh cpuset takes no process until it has CPUs and memory nodes."""
        for name in ("cpuset.cpus", "cpuset.mems"):
            file = folder / name
            if file.exists() and not (folder / "cgroup.controllers").exists():
                file.write_text((folder.parent / name).read_text())

    def settings(self, path: str) -> dict[str, str]:
        """Every file of a cgroup that holds a setting, to the letter.

        Except one: the kernel refuses to empty cpuset.cpus of a populated cgroup2, so there the effect is compared.
        """
        folders = {Path(m.path, path) for m in self.hierarchies.in_use().values()}
        files = sorted(file for folder in folders for file in folder.iterdir() if is_setting(file))
        texts = {str(file): file.read_text() for file in files}
        effects = (folder / "cpuset.cpus.effective" for folder in folders)
        return texts | {str(e).removesuffix(".effective"): e.read_text() for e in effects if e.exists()}

    def cpu_s(self, path: str) -> float:
        """CPU time used, by the kernel's own count."""
        if self.hierarchies.version("cpuacct") == 1:
            return int((cgroup("cpuacct", path) / "cpuacct.usage").read_text()) / 1e9
        return stat(cgroup("unified", path) / "cpu.stat")["usage_usec"] / 1e6

    def cpus(self, path: str, seconds: float) -> float:
        """CPUs in use on average over a time."""
        before, begun = self.cpu_s(path), time.monotonic()
        time.sleep(seconds)
        return (self.cpu_s(path) - before) / (time.monotonic() - begun)

    def ticks(self) -> float:
        lines = self.agent.get("/metrics").splitlines()
        return next(float(x.split()[1]) for x in lines if x.startswith('j10ce_ring_runs_total{cause="tick"}'))

    def tick(self, times: int = 2) -> None:
        """Let the whole ring run."""
        goal = self.ticks() + times
        assert eventually(lambda: self.ticks() >= goal, PATIENCE_S)

    def drifts(self) -> dict[str, Any]:
        return {d["setting"]: d for d in self.agent.get("/v1/drift")}


def is_setting(file: Path) -> bool:
    mode = file.stat().st_mode
    readable_and_writable = modes.S_IRUSR | modes.S_IWUSR
    if not modes.S_ISREG(mode) or mode & readable_and_writable != readable_and_writable:
        return False
    return file.name not in NO_SETTINGS and not file.name.endswith(MOVING)
