"""VolumeBinding: a pod runs where its volumes can be reached. What cannot be judged waits, and is never misplaced."""

from __future__ import annotations

from typing import Final

import numpy as np

from j10ce.scheduler.book.around import ClaimFacts, VolumeFacts
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.suiting import among
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Filter, PreFilter, Reach, Refused, Skip, Turned

OUT_OF_REACH: Final = Turned(("node(s) didn't match PersistentVolume's node affinity",), resolvable=False)


class VolumeBinding:
    name = "VolumeBinding"
    reach = Reach.CLUSTER

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | Refused | None:
        if not pod.claims:
            return Skip()
        for name in pod.claims:
            claim = book.around.one(ClaimFacts, pod.namespace, name)
            if claim is None:
                return Refused(f'persistentvolumeclaim "{name}" not found')
            if not claim.volume:
                return Refused(
                    f'persistentvolumeclaim "{name}" is bound to no volume: this scheduler binds none for its first'
                    " consumer; a storage class of volumeBindingMode Immediate, or another scheduler, does"
                )
            if book.around.one(VolumeFacts, "", claim.volume) is None:
                return Refused(
                    f'persistentvolumeclaim "{name}" is bound to volume "{claim.volume}", which is not there'
                )
        return None

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        mask = np.ones(len(rows), np.bool_)
        for name in pod.claims:
            claim = book.around.one(ClaimFacts, pod.namespace, name)
            volume = claim and book.around.one(VolumeFacts, "", claim.volume)
            mask &= among(volume.nodes, book, rows) if volume else False
        return mask

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return OUT_OF_REACH


_: tuple[type[Filter], type[PreFilter]] = (VolumeBinding, VolumeBinding)
