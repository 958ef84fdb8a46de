"""A real node on this machine: containerd, runc and a kubelet, beside a control plane of tests.lab.kube.cluster.

with running(folder) as cluster, joined(cluster) as node:
    node.run("web", requests={"cpu": "100m"})

Root only, and no other kubelet may run here. All that is started, mounted, made or set is ended, unmounted, removed
and set back; whatever existed before is left alone. Pods run busybox; nothing is pulled from anywhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.etcd.cluster import free_ports
from tests.lab.archive import Image, archived
from tests.lab.debian import program, unpacked
from tests.lab.kernel import cache_dir, locked
from tests.lab.kube.cluster import FOR_PODS, PATIENCE_S, REAL_NODE, Cluster
from tests.lab.kube.kubernetes import binary

IMAGE = "localhost/busybox:lab"
PAUSE = "localhost/pause:lab"
OTHERS = [f"docker.io/library/{name}" for name in ("busybox:1.37", "nginx:1.29", "redis:8")]  # those of examples/
CGROUPS = Path("/sys/fs/cgroup")
# What a kubelet, containerd and CNI change outside of their own folders, whatever their configuration says.
SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
)
OUTSIDE = (
    *("/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/run/containerd", "/var/lib/cni", "/run/nri"),
    *("/run/j10ce-qos", "/var/lib/j10ce-qos"),  # of an agent that runs as a pod
)
FOREVER = ["/bin/sleep", "2147483647"]
BUSY = ["/bin/sh", "-c", "while :; do :; done"]
# restrict_oom_score_adj: a sandbox asks for -998, which takes CAP_SYS_RESOURCE.
CONTAINERD = """version = 2
root = "{home}/root"
state = "{home}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
grpc = {{ address = "{home}/containerd.sock" }}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
netns_mounts_under_state_dir = true
restrict_oom_score_adj = true
cni = {{ bin_dir = "{cni}", conf_dir = "{home}/cni" }}
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
runc = {{ runtime_type = "io.containerd.runc.v2", options = {{ BinaryName = "{runc}", SystemdCgroup = {systemd} }} }}
"""

SYS_RESOURCE = 24  # the number of CAP_SYS_RESOURCE
RUNC = """#!/bin/sh
without='s/"CAP_SYS_RESOURCE",//g; s/,"CAP_SYS_RESOURCE"//g; s/"CAP_SYS_RESOURCE"//g'
for word; do
    case $before in
    --bundle) sed -i "$without" "$word/config.json" ;;
    --process) sed -i "$without" "$word" ;;
    esac
    before=$word
done
exec {runc} "$@"
"""


class LabNode:
    """`name` is how the API server knows it."""

    name = REAL_NODE

    def __init__(self, cluster: Cluster, netns: str = "") -> None:
        """`netns`: where pods' networks end and pods of the host's network are; empty: this machine's."""
        self.cluster, self.netns = cluster, netns
        self.home = cluster.folder / "node"
        self.kubelet_port, self._health = free_ports(2)
        self._sysctls = {name: Path("/proc/sys", name).read_text() for name in SYSCTLS}
        self._made = [Path(path) for path in OUTSIDE if not Path(path).exists()]

    # ------------------------------------------------------------------ its life

    def start(self) -> None:
        self._start_containerd()
        self.start_kubelet()
        self.cluster.wait("the real node", lambda: self.cluster.usable_nodes() >= 1)

    def start_kubelet(self) -> None:
        home, version = self.home, self.cluster.version
        config = self._write("kubelet/config.json", json.dumps(self._kubelet_config()))
        command: list[str | Path] = [
            binary("kubelet", version),
            f"--config={config}",
            f"--root-dir={home}/kubelet/root",
        ]
        command += [f"--kubeconfig={self.cluster.kubeconfig('kubelet')}", f"--hostname-override={self.name}"]
        command += [f"--cert-dir={home}/kubelet/pki"]
        if version == "old":
            command += ["--container-runtime=remote", f"--container-runtime-endpoint=unix://{home}/containerd.sock"]
        self.cluster.start("kubelet", command)

    def stop(self) -> None:
        """Whatever state it is in."""
        for name in ("kubelet", "containerd"):
            if name == "containerd":
                self._end_containers()
            with suppress(KeyError):
                self.cluster.kill(name)
        self._end_containers()
        unmount_below(self.home)
        _remove_cgroups()
        for name, value in self._sysctls.items():
            Path("/proc/sys", name).write_text(value)
        for path in self._made:
            unmount_below(path)
            shutil.rmtree(path, ignore_errors=True)

    def _start_containerd(self) -> None:
        programs = self._programs()
        cni = unpacked("containernetworking-plugins") / "usr/lib/cni"
        ipam = {"type": "host-local", "dataDir": f"{self.home}/ipam", "ranges": [[{"subnet": "10.88.0.0/24"}]]}
        ipam["routes"] = [{"dst": "0.0.0.0/0" if self.netns else f"{FOR_PODS}/32"}]
        network = {"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "ptp", "ipam": ipam}]}
        self._write("cni/10-lab.conflist", json.dumps(network))
        runc = self._runc()
        config = self._write("config.toml", containerd_config(self.home, cni, runc))
        path = {"PATH": f"{programs}:{runc.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        inside = ["nsenter", f"--net=/run/netns/{self.netns}"] if self.netns else []
        self.cluster.start("containerd", [*inside, programs / "containerd", "--config", config], path)
        self.cluster.wait("containerd", lambda: self._ctr("version").returncode == 0)
        self.load(busybox_image(self.home))

    def _runc(self) -> Path:
        """Where root itself lacks a capability, one that leaves it out: else containers that ask for it do not run."""
        plain = program("runc")
        if _has(SYS_RESOURCE):
            return plain
        wrapper = self._write("runc", RUNC.format(runc=plain))
        wrapper.chmod(0o755)
        return wrapper

    def load(self, archive: Path) -> None:
        """Images that pods may then run."""
        done = self._ctr("images", "import", archive)
        if done.returncode:
            raise RuntimeError(f"{archive}: {done.stderr}")

    def _ctr(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        ctr = [self._programs() / "ctr", "--address", self.home / "containerd.sock", "--namespace", "k8s.io"]
        return subprocess.run([*ctr, *words], check=False, capture_output=True, text=True)

    def _programs(self) -> Path:
        return unpacked("containerd", suite="sid" if self.cluster.version == "current" else "") / "usr/bin"

    def _kubelet_config(self) -> dict[str, Any]:
        pki = self.cluster.pki.folder
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": self.kubelet_port,
            "healthzBindAddress": "127.0.0.1",
            "healthzPort": self._health,
            "tlsCertFile": str(pki / "server.crt"),
            "tlsPrivateKeyFile": str(pki / "server.key"),
            "authorization": {"mode": "Webhook"},
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.cluster.pki.file)},
            },
            "staticPodPath": str(self._folder("manifests")),
            "cgroupDriver": "cgroupfs",
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi"},
            "volumePluginDir": f"{self.home}/flex",
        }
        if self.cluster.version == "old":
            return config | {"featureGates": {"LocalStorageCapacityIsolation": False}}
        newer = {"failCgroupV1": False, "localStorageCapacityIsolation": False, "podLogsDir": f"{self.home}/pod-logs"}
        return config | newer | {"containerRuntimeEndpoint": f"unix://{self.home}/containerd.sock"}

    def _end_containers(self) -> None:
        _end_pods()
        _kill(self._shims())

    def _shims(self) -> Iterator[int]:
        address = f"{self.home}/containerd.sock".encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if b"containerd-shim" in words[0] and address in words:
                    yield int(path.parent.name)

    def _folder(self, name: str) -> Path:
        made = self.home / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def _write(self, name: str, text: str) -> Path:
        path = self._folder(str(Path(name).parent)) / Path(name).name
        path.write_text(text)
        return path

    # ------------------------------------------------------------------ its pods

    def run(
        self, name: str, *, namespace: str = "default", labels: Mapping[str, str] | None = None, **more: Any
    ) -> str:
        """A pod that runs; its uid. `more` as in `pod`."""
        body = pod(name, labels=labels, **more)
        made = self.cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        self.cluster.wait(f"pod {name}", lambda: self.get(name, namespace)["status"].get("phase") == "Running")
        return str(made["metadata"]["uid"])

    def get(self, name: str, namespace: str = "default") -> dict[str, Any]:
        obj: dict[str, Any] = self.cluster.call("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return obj

    def delete(self, name: str, namespace: str = "default") -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        self.cluster.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", options)

    def cgroup(self, uid: str, controller: str = "cpu") -> Path:
        """Of a pod that has one."""
        (folder,) = (CGROUPS / controller / "kubepods").rglob(f"pod{uid}")
        return folder

    def containers(self, uid: str, name: str, namespace: str = "default", controller: str = "cpu") -> dict[str, Path]:
        statuses = self.get(name, namespace)["status"]["containerStatuses"]
        return {s["name"]: self.cgroup(uid, controller) / s["containerID"].rpartition("/")[2] for s in statuses}


def pod(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    command: Sequence[str] = tuple(FOREVER),
    containers: Sequence[Mapping[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """On the real node, without a scheduler."""
    one = container("main", requests=requests, limits=limits, command=command)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "nodeName": REAL_NODE,
            "containers": list(containers or [one]),
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }


def container(
    name: str,
    *,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    command: Sequence[str] = tuple(FOREVER),
    **more: Any,
) -> dict[str, Any]:
    asked = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "command": [*command], "resources": asked, **more}


@contextmanager
def joined(cluster: Cluster, netns: str = "") -> Iterator[LabNode]:
    """One at a time on this machine; waits for its turn. `netns`: whose links are the node's."""
    if os.geteuid():
        raise PermissionError("a real node needs root")
    place = cache_dir() / "real-node"
    with locked(place):
        ours = place / "ours"  # there while a node of the lab exists, and after one whose tests were killed
        if ours.exists():
            _end_pods()
            _remove_cgroups()
        if kubepods():
            raise RuntimeError(f"another kubelet runs on this machine: {kubepods()}")
        node = LabNode(cluster, netns)
        ours.touch()
        try:
            node.start()
            yield node
        finally:
            node.stop()
            ours.unlink()


def kubepods() -> list[Path]:
    return [*CGROUPS.glob("kubepods"), *CGROUPS.glob("*/kubepods")]


def _end_pods() -> None:
    """What runs in the pods' cgroups, which are ours alone."""
    for group in _groups():
        with suppress(OSError):
            _kill(map(int, (group / "cgroup.procs").read_text().split()))


def _groups() -> list[Path]:
    """All of them, children before parents; some may be gone by the time they are listed."""
    return [Path(path) for root in kubepods() for path, _, _ in os.walk(root, topdown=False)]


def containerd_config(home: Path, cni: Path, runc: Path, *, systemd: bool = False) -> str:
    """`systemd`: it is asked for the cgroups of containers, as kubelets with that driver expect."""
    return CONTAINERD.format(home=home, pause=PAUSE, cni=cni, runc=runc, systemd=str(systemd).lower())


def busybox_image(home: Path) -> Path:
    """An archive with one image, busybox asleep, under many names."""
    busybox = program("busybox")
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(home / "busybox.layer", "w") as layer:
        layer.add(busybox, "bin/busybox")
        for applet in set(applets) - {"busybox"}:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
    config = {"Cmd": FOREVER, "Env": ["PATH=/bin"]}
    return archived([Image([PAUSE, IMAGE, *OTHERS], [home / "busybox.layer"], config)], home / "busybox.tar")


def _has(capability: int) -> bool:
    (bounding,) = re.findall(r"^CapBnd:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(int(bounding, 16) >> capability & 1)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def unmount_below(path: Path) -> None:
    """Latest first. Raises if anything stays: what is below is deleted next."""
    for mount in _mounts(path):  # one may go with another: mounts propagate
        subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    if left := _mounts(path):
        raise RuntimeError(f"still mounted: {left}")


def _mounts(path: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in reversed(points) if Path(point).is_relative_to(path)]


def _remove_cgroups() -> None:
    """They are busy for a moment after their last process has died."""
    deadline = time.monotonic() + PATIENCE_S
    while groups := _groups():
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            raise RuntimeError(f"cgroups that cannot be removed: {groups}")
