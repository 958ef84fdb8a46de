"""The option fail-closed: what is lost while a manager restarts and certificates change, and what is not."""

from __future__ import annotations

import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from j10ce.manager.kube.certificates import AUTHORITY_S, OVERLAP_S, renewed, secret_data
from j10ce.manager.kube_plane import SERVICE
from tests.kube.manifests import CLONE, built, deploy_for
from tests.kube.plane import managing
from tests.kube.webhook.test_admission import LABEL, SECRET, Hooked, bundles, prepare, register
from tests.lab.kube.cluster import Answer, Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.one_version

END = b"-----END CERTIFICATE-----\n"
OVERLAYS = {"current": "fail-closed", "old": "kubernetes-1.20-fail-closed"}
HOSTS = tuple(f"{SERVICE}.j10ce-system{end}" for end in (".svc", "", ".svc.cluster.local"))
EXCUSES = ("failed calling webhook", "could not judge it, and is closed")  # nobody is there; it has just started
SIGNS_IN_S = 40.0  # time for everyone to hear of the next authority, in place of an hour


def old_certificates() -> dict[str, str]:
    """Of an authority that is near its end: the next one is trusted already, and signs in a moment."""
    now = time.time()  # noqa: TID251  certificates are checked by real clocks
    first = renewed(None, HOSTS, now - 0.7 * AUTHORITY_S)
    return secret_data(renewed(first, HOSTS, now - OVERLAP_S + SIGNS_IN_S))


def arguments(objects: list[Any]) -> set[str]:
    """Of the manager."""
    (made,) = (o["spec"]["template"]["spec"]["containers"][0] for o in objects if o["kind"] == "Deployment")
    return set(made["args"])


@pytest.fixture
def closed(version: Version, tmp_path: Path) -> Iterator[Hooked]:
    with running(tmp_path, version, controllers=True) as cluster:
        prepare(cluster, old_certificates())
        overlay = built(CLONE / "deploy/overlays" / OVERLAYS[version])
        more = sorted(arguments(overlay) - arguments(built(deploy_for(version))))
        with managing(cluster, tmp_path, host="0.0.0.0", more=more) as plane:
            hooks = [made for made in overlay if made["kind"].endswith("WebhookConfiguration")]
            register(cluster, plane.port, hooks, "Fail")
            made = Hooked(cluster, plane)
            cluster.wait("webhooks", made.judged)
            yield made


@pytest.mark.timeout(600)
def test_a_manager_that_answers_refuses_nobody_while_certificates_change(closed: Hooked) -> None:
    before = authorities(closed.cluster)
    with Asking(closed) as asking:
        with asking.excused():
            restart(closed)
        closed.cluster.wait("the next authority to sign", lambda: "former-ca.crt" in material(closed.cluster))
        asking.wait_for_more()
        with asking.excused():
            restart(closed)
        asking.wait_for_more()
    assert len(before) == 2
    assert before == authorities(closed.cluster), "both were trusted all the while"
    assert asking.refusals == []
    assert asking.unjudged == 0, "what the webhooks would refuse is never admitted"
    assert [words for words in asking.excuses if not any(excuse in words for excuse in EXCUSES)] == []
    assert asking.excuses, "while no manager answers nothing is admitted"


def restart(hooked: Hooked) -> None:
    hooked.plane.kill()
    with pytest.raises(Answer, match="failed calling webhook"):
        hooked.pod(**{LABEL: "be"})
    hooked.plane.start()
    hooked.cluster.wait("webhooks", hooked.judged)


def material(cluster: Cluster) -> dict[str, str]:
    obj: dict[str, str] = cluster.call("GET", f"{SECRET}/j10ce-certificates")["data"]
    return obj


def authorities(cluster: Cluster) -> set[bytes]:
    """Those that the API server trusts."""
    (bundle,) = bundles(cluster)
    return {one for one in b64decode(bundle).split(END) if one.strip()}


class Asking:
    """Good pods and bad ones, one after the other, for as long as the block lasts."""

    def __init__(self, hooked: Hooked) -> None:
        self._hooked = hooked
        self._over, self._excused = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.asked = self.unjudged = 0
        self.refusals: list[str] = []
        self.excuses: list[str] = []

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def excused(self) -> Iterator[None]:
        """No manager answers for a part of the block; a call that is under way at its end belongs to it."""
        self._excused.set()
        yield
        self.wait_for_more()
        self._excused.clear()

    def wait_for_more(self) -> None:
        before = self.asked
        self._hooked.cluster.wait("more pods", lambda: self.asked > before + 1)

    def _ask(self) -> None:
        while not self._over.is_set():
            excused = self._excused.is_set()
            try:
                self._hooked.pod(**{LABEL: "be"})
            except Answer as e:
                (self.excuses if excused or self._excused.is_set() else self.refusals).append(str(e))
            self.unjudged += self._admitted_unjudged()
            self.asked += 1

    def _admitted_unjudged(self) -> bool:
        try:
            self._hooked.pod(**{LABEL: "nowhere"})
        except Answer:
            return False
        return True
