"""A fleet on one machine, set up as docs/fleet.md says: certificates, etcd, managers, tokens, agents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.agent.process import AgentProcess
from tests.etcd.cluster import Cluster, Host
from tests.etcd.network import Network, bridged
from tests.fleet.managers import BASE, Manager, Managers, eventually

CONTROL = 3
NODES = 3
PORT = 7443


class Agent(AgentProcess):
    """An agent on a host of its own: network, run directory, state, and a cgroup below this machine's root."""

    def __init__(self, folder: Path, top: str, clone: Path, host: Host, number: int) -> None:
        super().__init__(folder, top, clone)
        self.inside, self.number, self.name = host.inside, number, f"node-{number}"

    def floor(self, workload: str) -> str:
        """What the agent gives a workload, as CPUs; empty: nothing."""
        listed = {w["metadata"]["name"]: w for w in self.client.get("/v1/workloads")["items"]}
        return str(listed[workload]["status"].get("floor", {}).get("cpu", ""))


class Fleet:
    def __init__(self, folder: Path, clone: Path, top: str, network: Network) -> None:
        self.folder, self.clone, self.network = folder, clone, network
        self.control, self.nodes = network.hosts[:CONTROL], network.hosts[CONTROL:]
        self.etcd = Cluster(folder / "etcd", self.control)
        self._secure()
        self.managers = Managers([self._manager(n, host) for n, host in enumerate(self.control)])
        self.agents = [Agent(folder / f"node-{n}", f"{top}-{n}", clone, host, n) for n, host in enumerate(self.nodes)]

    def cli(self, *words: str, code: int = 0) -> str:
        """The command as its user runs it; its standard output."""
        environ = {**os.environ, "PYTHONPATH": str(self.clone / "src"), "J10CE_CONFIG_DIR": str(self.folder)}
        command = [sys.executable, "-m", "j10ce.cli.main", *words]
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=150, check=False)
        assert ended.returncode == code, f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    def admin(self, *words: str, code: int = 0) -> str:
        return self.cli("--server", self.managers.urls, "--token-file", str(self.token), "--ca-file", str(self.ca),
                        *words, code=code)  # fmt: skip

    def start(self) -> None:
        self.etcd.start()
        self.managers.start()
        (self.folder / "bootstrap").write_text(
            self.admin("token", "create", "rack", "--role", "bootstrap", "--uses", "9")
        )
        for agent in self.agents:
            self.start_agent(agent)
        assert eventually(lambda: self.ready_nodes() == {agent.name for agent in self.agents})

    def start_agent(self, agent: Agent) -> None:
        agent.start(
            "--server", self.managers.urls, "--ca-file", str(self.ca), "--node-name", agent.name,
            "--bootstrap-token-file", str(self.folder / "bootstrap"),
        )  # fmt: skip

    def ready_nodes(self) -> set[str]:
        """Nodes whose report counts."""
        listed = self.managers.leader().client.get(f"{BASE}/nodeqoses")["items"]
        return {node["metadata"]["name"] for node in listed if "heartbeat" in node["status"].get("node", {})}

    def cut_off(self, agent: Agent) -> None:
        """Its host hears nobody but this test."""
        self.network.isolate(CONTROL + agent.number)

    def stop(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.etcd.stop)
            stack.callback(self.managers.stop)
            for agent in self.agents:
                stack.callback(agent.clean)

    def _secure(self) -> None:
        pki = self.folder / "pki"
        self.ca, self.token = pki / "ca.crt", self.folder / "admin.token"
        names = [word for host in self.control for word in ("--host", host.address)]
        self.cli("certs", "init")
        self.cli("certs", "server", *names)
        self.token.write_text(self.cli("token", "create", "admin", "--role", "admin", "--auth", str(pki / "auth.yaml")))
        self.flags = [
            "--store", self.etcd.url, "--auth", str(pki / "auth.yaml"), "--tls-cert", str(pki / "server.crt"),
            "--tls-key", str(pki / "server.key"), "--log-format", "json",
        ]  # fmt: skip

    def _manager(self, n: int, host: Host) -> Manager:
        folder, audit = self.folder / f"cp-{n}", self.folder / f"cp-{n}" / "audit.log"
        return Manager(
            f"cp-{n}", folder, f"{host.address}:{PORT}", [*self.flags, "--audit-log", str(audit)],
            inside=host.inside, ca=self.ca.read_text(), token=self.token.read_text().strip(),
        )  # fmt: skip


@contextmanager
def standing(folder: Path, clone: Path, top: str) -> Iterator[Fleet]:
    """Everything runs and every node has reported; nothing of it is left when the block ends."""
    with bridged(CONTROL + NODES) as network:
        fleet = Fleet(folder, clone, top, network)
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.stop()
