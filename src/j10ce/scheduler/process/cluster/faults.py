"""Tells pods what is wrong in their annotations: they are scheduled as if it were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from j10ce.kube.events import Subject
from j10ce.model.stored import Happening
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import PodFacts

REASON: Final = "InvalidAnnotation"


class Faults:
    """`leads`: one replica speaks for all."""

    def __init__(
        self, accounts: Accounts, tell: Callable[[Subject, Happening], None], leads: Callable[[], bool]
    ) -> None:
        self._accounts, self._tell, self._leads = accounts, tell, leads
        self._known: dict[str, tuple[str, ...]] = {}  # by uid: what its pod has heard already

    def seen(self, pod: PodFacts) -> None:
        incarnation = self._accounts.of(pod.uid)
        faults = incarnation.identity.faults if incarnation else ()
        if not faults or not self._leads() or self._known.get(pod.uid) == faults:
            return
        self._known[pod.uid] = faults
        for fault in faults:
            self._tell(Subject("v1", "Pod", pod.namespace, pod.name, pod.uid), Happening("Warning", REASON, fault))

    def gone(self, uid: str) -> None:
        self._known.pop(uid, None)
