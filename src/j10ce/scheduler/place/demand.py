"""What a workload asks of each node: its floor there, and how much of it a unit already held for it covers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from j10ce.model import kinds
from j10ce.model.kinds import NAMESPACE_NAME_LABEL, WORKLOAD_LABEL, Minimum, QoSProfile, Selector, Tier
from j10ce.model.resource import Resources
from j10ce.model.workload import Workload
from j10ce.policy.choose import Chooser
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.profiles import RESERVES_REQUEST
from j10ce.policy.select import Labels
from j10ce.scheduler.cluster import Amounts, Cluster, Mask, OpenPledge, Scores, share_of

NO_NODE = Resources()


class Request(NamedTuple):
    """One workload to be placed. Requests that are equal but for the name are decided alike."""

    name: str
    namespace: str
    labels: Labels
    minimum: Minimum
    requests: Minimum = Minimum()
    tier: Tier = Tier.STANDARD
    node: str = ""  # the only one that will do
    selector: Selector | UnsetType = UNSET
    unenforced: bool = False  # a floor that the kernel there cannot keep is good enough
    ignored: bool = False  # by its labels: no policy counts for it


class Demand(NamedTuple):
    """A request against one cluster."""

    request: Request
    floor: Amounts
    need: Amounts  # the part of the floor that must still be free: nothing where a unit covers it
    spare: Amounts  # what a best-effort workload asks for beside all floors
    payer: npt.NDArray[np.int64]  # row of `cluster.policies` whose unit it would take; -1: none
    shares: Scores  # [node, resource]: how much of what may be promised is promised with it there


def request(workload: kinds.Workload, profiles: Iterable[QoSProfile], *, unenforced: bool = False) -> Request:
    meta, spec = workload.metadata, workload.spec
    namespace = meta.namespace or "default"
    labels = {**meta.labels, WORKLOAD_LABEL: meta.name}
    asked = amounts(spec.requests, NO_NODE)
    known = Workload(namespace, meta.name, labels, {NAMESPACE_NAME_LABEL: namespace}, requests=asked)
    choice = Chooser(profiles).choose(known)
    return Request(
        meta.name,
        namespace,
        labels,
        spec.minimum,
        spec.requests,
        choice.tier,
        spec.node,
        spec.node_selector,
        unenforced,
        choice.ignored,
    )


def demand(wanted: Request, cluster: Cluster) -> Demand:
    """Floors of several policies merge by maximum. Who pays is as `policy.payer` says, on all nodes at once: policies
    come by name, so of equal shares the first stays."""
    floor = _shapes(wanted.minimum, cluster)
    if wanted.tier in RESERVES_REQUEST:
        floor = np.maximum(floor, _shapes(wanted.requests, cluster))
    payer = np.full(len(cluster.names), -1, np.int64)
    unit, share = np.zeros_like(floor), np.zeros(len(cluster.names))
    for n, held in enumerate(cluster.policies):
        if wanted.ignored or held.namespace != wanted.namespace or not held.test(wanted.labels):
            continue
        here, shape = _covers(held, cluster), _shapes(held.minimum, cluster)
        floor = np.where(here[:, None], np.maximum(floor, shape), floor)
        dominant = share_of(np.where(cluster.capacity > 0, shape, 0), cluster.capacity).max(axis=1, initial=0.0)
        better = here & (dominant > share)
        share = np.where(better, dominant, share)
        unused = np.zeros(len(cluster.names), np.bool_)
        unused[list(held.unused)] = True
        payer = np.where(better, np.where(unused, n, -1), payer)
        unit = np.where(better[:, None], shape, unit)
    covered = (payer >= 0) & (floor <= unit).all(axis=1)
    spare = _shapes(wanted.requests if wanted.tier is Tier.BESTEFFORT else Minimum(), cluster)
    need = np.where(covered[:, None], 0, floor)
    shares = share_of(cluster.promised + need, cluster.room)
    return Demand(wanted, floor, need, spare, np.where(covered, payer, -1), shares)


def _covers(held: OpenPledge, cluster: Cluster) -> Mask:
    test = held.nodes
    if test is None:
        return np.ones(len(cluster.names), np.bool_)
    return np.array([test(labels) for labels in cluster.labels], np.bool_)


def _shapes(minimum: Minimum, cluster: Cluster) -> Amounts:
    """A minimum on every node; only percentages make a difference between them."""
    fields = (minimum.cpu, minimum.memory, minimum.network, minimum.disk_read, minimum.disk_write)
    if not any(q.percent for q in fields if q is not UNSET):
        one = np.array(amounts(minimum, NO_NODE), np.int64)
        return np.broadcast_to(one, cluster.capacity.shape).copy()
    each = [amounts(minimum, Resources._make(c)) for c in cluster.capacity.tolist()]
    return np.array(each, np.int64).reshape(cluster.capacity.shape)
