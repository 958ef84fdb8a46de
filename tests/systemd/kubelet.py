"""A stand-alone kubelet in the guest: containerd and runc with the systemd driver, pods from manifests in a folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.agent.process import eventually
from tests.lab.debian import program
from tests.lab.kube.kubernetes import binary
from tests.lab.kube.node import busybox_image, containerd_config, pod, unmount_below
from tests.systemd.pods import NODE
from tests.systemd.units import ROOT, systemctl

PORT = 10255
PATIENCE_S = 120.0


class Kubelet:
    """Its pods use the host's network, so that there is nothing to configure."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._manifests = home / "manifests"
        self._manifests.mkdir()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{PORT}"

    def start(self) -> None:
        containerd, sock = program("containerd"), self.home / "containerd.sock"
        config = self.home / "config.toml"
        config.write_text(containerd_config(self.home, self.home / "cni", program("runc"), systemd=True))
        archive = busybox_image(self.home)
        _service("containerd", containerd, "--config", config)
        ctr = [containerd.with_name("ctr"), "--address", sock, "--namespace", "k8s.io"]
        load = [*ctr, "images", "import", archive]
        assert eventually(lambda: not subprocess.run(load, check=False, capture_output=True).returncode, PATIENCE_S)
        self.start_kubelet()

    def start_kubelet(self) -> None:
        config = self.home / "kubelet.json"
        config.write_text(json.dumps(self._config()))
        folders = (f"--root-dir={self.home}/kubelet", f"--cert-dir={self.home}/pki")
        _service("kubelet", binary("kubelet"), f"--config={config}", f"--hostname-override={NODE}", *folders)

    def stop(self) -> None:
        systemctl("stop", "kubelet.service")
        if (pods := ROOT / "kubepods.slice").exists():
            (pods / "cgroup.kill").write_text("1")
            systemctl("stop", pods.name)
        systemctl("stop", "containerd.service")
        systemctl("daemon-reload")  # or systemd may remember that the kubelet's slices have no file any more
        unmount_below(self.home)

    def _config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "readOnlyPort": PORT,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "staticPodPath": str(self._manifests),
            "fileCheckFrequency": "1s",
            "cgroupDriver": "systemd",
            "featureGates": {"MemoryQoS": True},
            "memoryReservationPolicy": "TieredReservation",
            "failSwapOn": False,
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            "volumePluginDir": f"{self.home}/flex",
            "podLogsDir": f"{self.home}/pod-logs",
            "containerRuntimeEndpoint": f"unix://{self.home}/containerd.sock",
        }

    # ------------------------------------------------------------------ its pods

    def write(self, name: str, uid: str, **more: Any) -> None:
        """A manifest, or another one for the same pod: with a uid of its own it stays the same pod."""
        body = pod(name, hostNetwork=True, **more)
        body["metadata"] |= {"uid": uid, "namespace": "default"}
        del body["spec"]["nodeName"]
        draft = self.home / f"{name}.json"
        draft.write_text(json.dumps(body))
        draft.replace(self._manifests / draft.name)

    def remove(self, name: str) -> None:
        (self._manifests / f"{name}.json").unlink()


@contextmanager
def stand_alone(home: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(home)
    try:
        yield kubelet
    finally:
        kubelet.stop()


def pod_path(uid: str, level: str = "burstable") -> str:
    """Where a kubelet with the systemd driver puts a pod: a dash in a slice's name would mean nesting."""
    above = "kubepods.slice" if level == "guaranteed" else f"kubepods.slice/kubepods-{level}.slice"
    prefix = "kubepods" if level == "guaranteed" else f"kubepods-{level}"
    return f"{above}/{prefix}-pod{uid.replace('-', '_')}.slice"


def _service(name: str, *command: str | Path) -> None:
    path = f"{program('containerd').parent}:{program('runc').parent}:{os.environ['PATH']}"
    subprocess.run(["systemd-run", "--quiet", f"--unit={name}", f"--setenv=PATH={path}", *command], check=True)
