"""What decides where a pod may run. Most pods ask for what others ask for: a text that was read is not read again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from j10ce.model.kube.native import Amounts, Pool
from j10ce.model.kube.placing import NativeAffinity, NativeSpread, NativeToleration
from j10ce.model.kube.pod import Pod, PodResources, requests
from j10ce.model.kube.wide_pod import UNREADABLE, WideContainer, WidePodSpec, decode_part, is_nothing
from j10ce.model.quantity import Quantity
from j10ce.scheduler.book.book import MOST_AMOUNT
from j10ce.scheduler.book.facts import pairs
from j10ce.scheduler.book.shape import NO_AFFINITY, HostPort, Shape
from j10ce.scheduler.reading.terms import affinity, spread, tolerations

T = TypeVar("T")
LIKELY: Final[Amounts] = {"cpu": Quantity.parse("100m"), "memory": Quantity.parse("200Mi")}  # of who asks for nothing
MATCH_KEYS: Final = b"matchLabelKeys"


class Shapes:
    """`faults` name what could not be read."""

    def __init__(self, most: int = 16_384) -> None:
        self._pool = Pool(most)
        self._most = most
        self._read: dict[Hashable, Any] = {}

    def shape(self, spec: WidePodSpec, labels: Mapping[str, str], faults: list[str]) -> Shape:
        asked, weighed = self._once(_asking(spec), lambda: _amounts(spec))
        shape = Shape(
            requests=asked,
            weighed=weighed,
            node_selector=pairs(spec.node_selector),
            affinity=self._part(spec.affinity, "affinity", _affinity, NO_AFFINITY, faults),
            tolerations=self._part(spec.tolerations, "tolerations", _tolerations, (), faults),
            spread=self._spread(spec.topology_spread_constraints, labels, faults),
            ports=_ports(spec),
            images=tuple(tagged(c.image) for c in (*spec.init_containers, *spec.containers)),
        )
        return self._pool.one(shape, shape)

    def _spread(self, text: Raw, labels: Mapping[str, str], faults: list[str]) -> Any:
        """It depends on the pod's own labels where it names keys of them."""
        own = pairs(labels) if MATCH_KEYS in bytes(text) else ()
        return self._part(text, "topologySpreadConstraints", lambda t: _spread(t, dict(own)), (), faults, own)

    def _part(
        self, text: Raw, name: str, read: Callable[[bytes], T], nothing: T, faults: list[str], beside: Hashable = ()
    ) -> T:
        if is_nothing(text):
            return nothing
        own = bytes(text)
        try:
            return self._once((name, own, beside), lambda: read(own))
        except UNREADABLE as e:
            faults.append(f"spec.{name} cannot be read: {e}")
            return nothing

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        known: T | None = self._read.get(key)
        if known is None:
            if len(self._read) >= self._most:
                self._read.clear()
            known = self._read[key] = make()
        return known


def amount_of(name: str, quantity: Quantity) -> int:
    return quantity.millicores() if name == "cpu" else quantity.bytes()


def tagged(image: str) -> str:
    """As nodes name it: without a tag it is the latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _affinity(text: bytes) -> Any:
    return affinity(decode_part(text, NativeAffinity))


def _tolerations(text: bytes) -> Any:
    return tolerations(decode_part(text, tuple[NativeToleration, ...]))


def _spread(text: bytes, labels: Mapping[str, str]) -> Any:
    return spread(decode_part(text, tuple[NativeSpread, ...]), labels)


def _asking(spec: WidePodSpec) -> Hashable:
    """All that amounts depend on."""
    return (
        tuple(
            (c.restart_policy, tuple(c.resources.requests.items()), tuple(c.resources.limits.items()))
            for c in (*spec.init_containers, *spec.containers)
        ),
        len(spec.containers),
        tuple(spec.overhead.items()),
        tuple(spec.resources.requests.items()),
        tuple(spec.resources.limits.items()),
    )


def _amounts(spec: WidePodSpec) -> tuple[tuple[tuple[str, int], ...], tuple[int, int]]:
    asked = {name: amount_of(name, quantity) for name, quantity in requests(Pod(spec=spec)).items()}
    likely = replace(
        spec,
        containers=tuple(map(_likely, spec.containers)),
        init_containers=tuple(map(_likely, spec.init_containers)),
    )
    weighed = requests(Pod(spec=likely))
    cpu, memory = (min(amount_of(name, weighed[name]), MOST_AMOUNT) if name in weighed else 0 for name in LIKELY)
    return tuple(sorted((name, amount) for name, amount in asked.items() if amount > 0)), (cpu, memory)


def _likely(container: WideContainer) -> WideContainer:
    """Who asks for nothing uses something: scores count it, room does not."""
    resources = container.resources
    return replace(container, resources=PodResources(requests={**LIKELY, **resources.limits, **resources.requests}))


def _ports(spec: WidePodSpec) -> tuple[HostPort, ...]:
    """On the host's network every port of a container is one of the node's."""
    return tuple(
        HostPort(number, port.protocol or "TCP", port.host_ip or HostPort._field_defaults["address"])
        for container in _all_the_time(spec)
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0)) > 0
    )


def _all_the_time(spec: WidePodSpec) -> Iterable[WideContainer]:
    return (*(c for c in spec.init_containers if c.sidecar), *spec.containers)
