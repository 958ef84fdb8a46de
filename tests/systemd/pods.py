"""What tests of pods share: an agent as in a pod whose API server is away, and what units and files say."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.model.kinds import MinimalReservationPolicy
from j10ce.model.kube.pod import Pod
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from tests.agent.process import AgentProcess
from tests.systemd.units import ROOT, cgroup_files, drop_ins, properties, systemctl

NODE = "guest"
FILES = ("cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.high", "memory.max")
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUS0CKWO2/rlIemsUOWS6ymjhk6JUwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTExNTIwMDgwM1oYDzIxMjYxMDIyMjAw
ODAzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASvjFi/YA0wPnwbXVF41yCU5c3jb+Bw4L5ORpXxAWikPnKBICM3fHQPEb2p9GlK
1c1lxpT105gEIb7dWBgKUV+Ho1MwUTAdBgNVHQ4EFgQU5ee2bzs9DtKsMjzUX+fz
6SiAGbswHwYDVR0jBBgwFoAU5ee2bzs9DtKsMjzUX+fz6SiAGbswDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAvNHUGLyS+vYYgLG17Ed0JeNGo9flt
ZJ/dF+nlKB+lLAIgfyELn3s9+4755QkGlEOxgGwHcE4CB3qTBiIqAtl+EAc=
-----END CERTIFICATE-----
"""


class PodAgent(AgentProcess):
    """With its pod's capabilities, and the document that it remembers; nobody answers for the API server."""

    def __init__(self, folder: Path, clone: Path) -> None:
        super().__init__(folder, "j10ce", clone)
        for made in (self.run_dir, self.state_dir, self.config_dir):
            made.mkdir(parents=True)
        self.cache = Cache(self.run_dir, self.state_dir)
        self.inside = ("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={rights(clone)}", "--")
        self.environ |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}

    def remember(self, policies: Iterable[MinimalReservationPolicy], pods: Iterable[Pod] = ()) -> None:
        document = NodeDocument(node=NODE, format=FORMAT, profiles=builtin(), policies=tuple(policies))
        self.cache.keep_document(replace(document, hash=digest(document)))
        self.cache.keep_pods(pods)

    def configure(self, **settings: Any) -> None:
        (self.config_dir / "agent.yaml").write_text(yaml.safe_dump(settings))

    def begin(self) -> None:
        self.start("--server", "kube:", "--node-name", NODE)

    def workloads(self) -> dict[str, dict[str, Any]]:
        return {w["metadata"]["name"]: w for w in self.client.get("/v1/workloads")["items"]}

    def originals(self) -> dict[str, str]:
        """What goes back, by setting."""
        return {entry["setting"]: entry["original"] for entry in self.client.get("/v1/journal")}


@contextmanager
def pod_agent(folder: Path, clone: Path) -> Iterator[PodAgent]:
    one = PodAgent(folder, clone)
    ACCOUNT.mkdir(parents=True)
    for name, text in (("ca.crt", CERTIFICATE), ("namespace", "j10ce-system"), ("token", "none")):
        (ACCOUNT / name).write_text(text)
    try:
        yield one
    finally:
        one.clean()
        shutil.rmtree(ACCOUNT)
        print(one.log.read_text()[-4000:] if one.log.exists() else "never started")


def rights(clone: Path) -> str:
    """The capabilities that deploy/ leaves an agent, as setpriv wants them."""
    (container,) = yaml.safe_load((clone / "deploy/base/agent.yaml").read_text())["spec"]["template"]["spec"][
        "containers"
    ]
    added = container["securityContext"]["capabilities"]["add"]
    return ",".join(("-all", *(f"+{name.lower()}" for name in added)))


def below(path: str) -> list[str]:
    """It and every cgroup in it, as systemd's paths."""
    return [str(folder.relative_to(ROOT)) for folder in (ROOT / path, *(ROOT / path).rglob("*")) if folder.is_dir()]


def unit(path: str, *properties: str) -> dict[str, str]:
    lines = systemctl("show", path.rpartition("/")[2], *(f"--property={p}" for p in properties)).splitlines()
    return dict(line.split("=", 1) for line in lines)


def values(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """By path, what the kernel holds."""
    return {path: cgroup_files(path, *FILES) for path in paths}


def everything(paths: Iterable[str]) -> dict[str, object]:
    """By path, what systemd shows and keeps on disk, and what the kernel holds."""
    units = {path: path.rpartition("/")[2] for path in paths}
    output = systemctl("show", *units.values()).split("\n\n")  # one call: each costs half a second of emulation
    return {
        path: (properties(text), drop_ins(units[path]), cgroup_files(path, *FILES))
        for path, text in zip(units, output, strict=True)
    }
