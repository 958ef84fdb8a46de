"""Whether this agent is replaced or removed for good: its DaemonSet says.

Settings outlive an agent that is replaced. One that is removed gives everything back first: as soon as it sees its
DaemonSet go, and, should it have missed that, when a signal stops it. The rights to look may be gone by then. They go
with an uninstallation and not with an update, so an API server that does not know us any more means the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec
import structlog
from msgspec import field

from j10ce.errors import Denied, NotFound, QosError
from j10ce.kube.light import KubeApi, Watched
from j10ce.kube.resource import Resource
from j10ce.model.kube.native import Native, NativeObject, Node, Taint, decode_native
from j10ce.model.stored import Key
from j10ce.store.mirror import Mirror

log = structlog.get_logger()
KIND: Final = "DaemonSet"
ANSWER_S: Final = 5.0
# Every DaemonSet's pods tolerate these, whatever it says.
TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
Fate = Literal["wanted", "removed", "unknown"]


class Expression(Native, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(Native, frozen=True, kw_only=True):
    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class Terms(Native, frozen=True, kw_only=True):
    node_selector_terms: tuple[Term, ...] = ()


class NodeAffinity(Native, frozen=True, kw_only=True):
    required: Terms | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Native, frozen=True, kw_only=True):
    node_affinity: NodeAffinity = NodeAffinity()


class Toleration(Native, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(Native, frozen=True, kw_only=True):
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()


class Template(Native, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Native, frozen=True, kw_only=True):
    template: Template = Template()


class DaemonSet(NativeObject, frozen=True, kw_only=True):
    spec: DaemonSetSpec = DaemonSetSpec()


def watched(namespace: str, name: str) -> Watched:
    resource = Resource(
        KIND, "/apis/apps/v1", "daemonsets", lambda text: decode_native(text, DaemonSet), namespaced=True
    )
    return Watched(resource, f"metadata.name={name}", namespace)


class Life:
    """`decide` is called on each change with whether the agent is wanted."""

    def __init__(self, api: KubeApi, namespace: str, name: str, node: str) -> None:
        self._api, self._node = api, node
        self._path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"
        self._key = Key(KIND, namespace, name)
        self._mirror = Mirror(api, KIND)

    async def run(self, decide: Callable[[bool], Awaitable[None]]) -> None:
        before = True
        async for _ in self._mirror.changes():
            held: Mapping[Key, object] = self._mirror.held
            wanted = _stands(held.get(self._key))
            if wanted != before:
                log.info("agent.judge", wanted=wanted, daemonset=str(self._key))
                await decide(wanted)
            before = wanted

    async def fate(self) -> Fate:
        """By asking once. Unknown: no answer."""
        try:
            daemonset = decode_native(await self._api.ask("GET", self._path, within_s=ANSWER_S), DaemonSet)
            if not _stands(daemonset):
                return "removed"
            text = await self._api.ask("GET", f"/api/v1/nodes/{self._node}", within_s=ANSWER_S)
            if not stays(daemonset.spec.template.spec, decode_native(text, Node)):
                return "removed"
        except (NotFound, Denied) as e:
            log.info("agent.unknown_to_api_server", error=str(e))
            return "removed"
        except (QosError, OSError, msgspec.MsgspecError) as e:
            log.warning("agent.fate_unknown", error=str(e), means="settings stay")
            return "unknown"
        return "wanted"


def stays(spec: PodSpec, node: Node) -> bool:
    """Whether the DaemonSet's controller leaves a pod that runs on the node where it is: the node is selected, and no
    taint drives it out. A taint that only keeps new pods away does not end one that is there."""
    labels, required = node.metadata.labels, spec.affinity.node_affinity.required
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    if required is not None and not any(_selects(term, node) for term in required.node_selector_terms):
        return False
    driving = [taint for taint in node.spec.taints if taint.effect == "NoExecute" and taint.key not in TOLERATED]
    return all(any(_tolerates(toleration, taint) for toleration in spec.tolerations) for taint in driving)


def _selects(term: Term, node: Node) -> bool:
    """A term without any requirement selects nothing."""
    labels, fields = node.metadata.labels, {"metadata.name": node.metadata.name}
    checks = [_holds(e, labels) for e in term.match_expressions] + [_holds(e, fields) for e in term.match_fields]
    return bool(checks) and all(checks)


def _holds(expression: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _beyond(value, expression)
        case _:
            return True  # of a Kubernetes to come: what we do not know does not end us


def _beyond(value: str | None, expression: Expression) -> bool:
    try:
        has, bound = int(value or ""), int(expression.values[0])
    except (ValueError, IndexError):
        return False
    return has > bound if expression.operator == "Gt" else has < bound


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """As Kubernetes compares them; one without a key tolerates every key."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def _stands(daemonset: object) -> bool:
    return isinstance(daemonset, DaemonSet) and daemonset.metadata.deletion_timestamp is None
