"""One stock kubectl, with a home of its own, and a policy for it to send."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

KIND = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}


class Kubectl:
    """One kubectl in one namespace."""

    def __init__(self, executable: Path, kubeconfig: Path, home: Path, namespace: str) -> None:
        self.old = "1.20" if "kubernetes-client" in str(executable) else ""
        self.namespace = namespace
        self._argv = [str(executable), "-n", namespace]
        self._env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *words: str, given: object = None, code: int = 0, **environ: str) -> str:
        """Its output; what it complains about when it is meant to fail. `given` goes to its standard input as YAML."""
        text = given if isinstance(given, str) else yaml.safe_dump_all([] if given is None else [given])
        done = subprocess.run(
            [*self._argv, *words], env=self._env | environ, input=text, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done.stderr + done.stdout if code else done.stdout

    def says(self, *words: str) -> str:
        """The last word that it prints, however it ends."""
        done = subprocess.run([*self._argv, *words], env=self._env, capture_output=True, text=True, timeout=150)
        return (done.stdout.split() or [""])[-1]

    def read(self, *words: str) -> Any:
        return json.loads(self("get", "-o", "json", *words))

    def owners(self, name: str) -> dict[str, Any]:
        """Who decided what of a policy."""
        path = f"/apis/j10ce.io/v1alpha1/namespaces/{self.namespace}/minimalreservationpolicies/{name}"
        entries = json.loads(self("get", "--raw", path))["metadata"]["managedFields"]
        return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}

    @contextmanager
    def following(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """One that runs meanwhile."""
        with subprocess.Popen([*self._argv, *words], env=self._env, stdout=subprocess.PIPE, text=True) as running:
            try:
                yield running
            finally:
                running.kill()


def policy(name: str = "db", *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} | ({"labels": labels} if labels else {})
    return {**KIND, "metadata": metadata, "spec": {"minimum": {"cpu": "1m"}} | spec}
