"""What a scenario says: nodes, classes of owners, when they come, what starting takes, what fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType, field

from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration, Quantity
from j10ce.scheduler.book.shape import Effect, TolerationOperator
from j10ce.scheduler.config.arguments import QosArguments

Kind: TypeAlias = Literal["Deployment", "StatefulSet", "Job", "Pod"]
NOTHING = Duration(0)


class ScenarioTaint(Strict, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


class ScenarioToleration(Strict, frozen=True, kw_only=True):
    key: str = ""
    operator: TolerationOperator = "Equal"
    value: str = ""
    effect: str = ""


class ScenarioNodes(Strict, frozen=True, kw_only=True):
    """`count` nodes that are alike: NAME-1, NAME-2 …; a single one is called NAME."""

    name: str
    count: int = 1
    cpu: Quantity
    memory: Quantity
    pods: int = 110
    resources: Mapping[str, Quantity] = {}
    labels: Mapping[str, str] = {}
    taints: tuple[ScenarioTaint, ...] = ()
    unschedulable: bool = False


class ScenarioClass(Strict, frozen=True, kw_only=True):
    """What owners of one kind of service are promised. `price` of a pod's hour; without it, the SLO is the price."""

    slo: float
    priority: int = 0
    price: float | UnsetType = UNSET


class ScenarioOwners(Strict, frozen=True, kw_only=True):
    """`count` owners that are alike, each with `replicas` pods.

    `duration`: a pod of a Job is done after so much running in one go; any other owner goes so long after it came.
    """

    name: str
    class_: str = field(name="class")
    count: int = 1
    kind: Kind = "Deployment"
    replicas: int = 1
    completions: int | UnsetType = UNSET  # of a Job; without it, as many as replicas
    cpu: Quantity
    memory: Quantity = Quantity(0)
    resources: Mapping[str, Quantity] = {}
    at: Duration | UnsetType = UNSET  # when the first one comes; without it, `arrivals` says when
    every: Duration = NOTHING  # and how long after the one before it each other one does
    duration: Duration | UnsetType = UNSET
    slo: float | UnsetType = UNSET  # where it is another one than that of the class
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[ScenarioToleration, ...] = ()


class Arrivals(Strict, frozen=True, kw_only=True):
    """How owners come that do not say when: one after another."""

    every: Duration = Duration(1)
    order: Literal["random", "listed"] = "random"
    poisson: bool = False  # `every` is the mean of waits that vary


class Outage(Strict, frozen=True, kw_only=True):
    """A node fails and its pods are gone: `node` at `at`, or any node, `every` being the mean time between two."""

    node: str = ""
    at: Duration | UnsetType = UNSET
    every: Duration | UnsetType = UNSET
    for_: Duration = field(name="for")


class Refund(Strict, frozen=True, kw_only=True):
    """What of the price is paid back where `short` of the promised availability is missing, both from 0 to 1."""

    short: float
    share: float


# Of the plugin of old. Without a minimum its rules move pods as often as anybody decides: most of them never run.
AS_SHIPPED = QosArguments(safety_margin=Duration(20.0), minimum_running_time=Duration(600.0))


class PolicyArguments(Strict, frozen=True, kw_only=True):
    """Of QosAware, where they are to be others than its defaults. It does not decide under `priority`."""

    lazy: QosArguments = QosArguments()
    classic: QosArguments = AS_SHIPPED


class Scenario(Strict, frozen=True, kw_only=True):
    name: str = "scenario"
    horizon: Duration
    nodes: tuple[ScenarioNodes, ...]
    classes: Mapping[str, ScenarioClass]
    owners: tuple[ScenarioOwners, ...] = ()
    arrivals: Arrivals = Arrivals()
    start_overhead: Mapping[str, int] = {}  # how often a start takes how long: from the binding until it runs
    more_overhead: Duration = NOTHING  # added to every start
    termination_grace: Duration = NOTHING
    bind_latency: Duration = NOTHING
    recreate_after: Duration = NOTHING  # until an owner has a new pod in the place of one that is gone
    failures: tuple[Outage, ...] = ()
    tariff: tuple[Refund, ...] = (
        Refund(short=0.0, share=0.1),
        Refund(short=0.01, share=0.25),
        Refund(short=0.05, share=1.0),
    )
    policies: PolicyArguments = PolicyArguments()
    drain: tuple[str, ...] = ()  # nodes that take no pod and give away those they have
