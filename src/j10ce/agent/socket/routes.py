"""Every route of the agent's socket, in one table: method, path, who may, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from j10ce.agent.report.metrics import Metrics
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.ring.runner import Stop
from j10ce.agent.socket import answers
from j10ce.agent.socket.admission import AdmitRequest, AdoptRequest, Caller
from j10ce.agent.socket.operations import Operations
from j10ce.errors import Finding, Invalid, NotFound, Unreachable, cut
from j10ce.http import server
from j10ce.http.server import Request, Response
from j10ce.model import schema
from j10ce.model.bounds import Several
from j10ce.model.kinds import Strict

S = TypeVar("S", bound=Struct)
API: Final = "/apis/j10ce.io/v1alpha1"


class Context(NamedTuple):
    """What handlers work with."""

    operations: Operations
    metrics: Metrics
    reload: Callable[[], Awaitable[dict[str, Any]]]


Handler = Callable[..., Awaitable[object]]


class For(Enum):
    ANYONE = "anyone"  # who can open the socket
    GROUP = "group"  # its members work for themselves: processes and holds of their own
    ROOT = "root"  # and the agent's own user: what is everybody's


class Route(NamedTuple):
    method: str
    path: str
    who: For
    handler: Handler
    does: str


class DisarmRequest(Strict, frozen=True, kw_only=True):
    revert: bool = False


class RevertRequest(Strict, frozen=True, kw_only=True):
    force: bool = False


class StopRequest(Strict, frozen=True, kw_only=True):
    revert: bool = False
    handover: bool = False


class PlanRequest(Strict, frozen=True, kw_only=True):
    objects: Several[Any] = ()
    node: dict[str, Any] | None = None


async def healthz(ctx: Context, request: Request, caller: Caller) -> Response:
    """The event loop answers; the ring answers within the time of a request."""
    await ctx.operations.shell.on_ring(bool)
    return server.text("ok\n")


async def readyz(ctx: Context, request: Request, caller: Caller) -> Response:
    if ctx.operations.shell.report is None:
        raise Unreachable("the ring has not run yet")
    return server.text("ok\n")


async def metrics(ctx: Context, request: Request, caller: Caller) -> Response:
    body = await ctx.operations.shell.on_ring(ctx.metrics.render, ctx.operations.shell.report)
    return Response(200, body, "text/plain; version=0.0.4; charset=utf-8")


async def status(ctx: Context, request: Request, caller: Caller) -> object:
    return ctx.operations.status()


async def workloads(ctx: Context, request: Request, caller: Caller, namespace: str | None = None) -> object:
    items = await ctx.operations.workloads()
    return answers.listing([w for w in items if namespace in (None, w.metadata.namespace)])


async def workload(ctx: Context, request: Request, caller: Caller, namespace: str, name: str) -> object:
    for one in await ctx.operations.workloads():
        if (one.metadata.namespace, one.metadata.name) == (namespace, name):
            return one
    raise NotFound(f"there is no workload {cut(namespace)}/{cut(name)} on this host")


async def admit(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.admit(_body(request, AdmitRequest), caller)


async def adopt(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.adopt(_body(request, AdoptRequest), caller)


async def remove(ctx: Context, request: Request, caller: Caller, namespace: str, name: str) -> object:
    return await ctx.operations.remove(namespace, name, caller, ended=request.query.get("ended") == "1")


async def doctor(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.doctor()


async def explain(ctx: Context, request: Request, caller: Caller) -> object:
    if not (target := request.query.get("target")):
        raise Invalid([Finding("target", None, "missing", "write ?target=workload/NAMESPACE/NAME")], "query")
    wide = request.query.get("wide") == "1"
    return await ctx.operations.explain(target, request.query.get("knob") or None, wide=wide)


async def top(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.top()


async def holds(ctx: Context, request: Request, caller: Caller) -> object:
    return answers.listing(ctx.operations.holds(), "HoldList")


async def hold(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.hold(_body(request, HoldRequest), caller)


async def release(ctx: Context, request: Request, caller: Caller) -> object:
    knobs = frozenset(filter(None, request.query.get("knobs", "").split(",")))
    return await ctx.operations.release(request.query.get("target", ""), knobs, caller)


async def journal(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.journal()


async def drift(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.drift()


async def arm(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.arm()


async def disarm(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.disarm(revert=_body(request, DisarmRequest).revert)


async def revert(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.operations.revert(force=_body(request, RevertRequest).force)


async def stop(ctx: Context, request: Request, caller: Caller) -> object:
    wanted = _body(request, StopRequest)
    why = "handed over to another agent" if wanted.handover else f"asked by uid {caller.uid}"
    return ctx.operations.stop(Stop(wanted.revert and not wanted.handover, why))


async def reload(ctx: Context, request: Request, caller: Caller) -> object:
    return await ctx.reload()


async def plan(ctx: Context, request: Request, caller: Caller) -> object:
    wanted = _body(request, PlanRequest)
    return await ctx.operations.plan(wanted.objects, wanted.node, caller)


async def routes(ctx: Context, request: Request, caller: Caller) -> object:
    return [{"method": r.method, "path": r.path, "for": r.who.value, "does": r.does} for r in ROUTES.values()]


_ROUTES: Final = (
    Route("GET", "/healthz", For.ANYONE, healthz, "the process and its ring answer"),
    Route("GET", "/readyz", For.ANYONE, readyz, "the ring has run once with everything it knows"),
    Route("GET", "/metrics", For.ANYONE, metrics, "Prometheus text"),
    Route("GET", "/v1", For.ANYONE, routes, "this table"),
    Route("GET", "/v1/status", For.ANYONE, status, "armed, workloads, holds, faults, last plan"),
    Route("GET", "/v1/workloads", For.ANYONE, workloads, "Workload objects of this host"),
    Route("GET", f"{API}/workloads", For.ANYONE, workloads, "the same, under its API path"),
    Route("GET", f"{API}/namespaces/{{namespace}}/workloads", For.ANYONE, workloads, "those of one namespace"),
    Route("GET", f"{API}/namespaces/{{namespace}}/workloads/{{name}}", For.ANYONE, workload, "one of them"),
    Route("POST", "/v1/workloads", For.GROUP, admit, "place a process: cgroup, knobs, then the process"),
    Route("DELETE", "/v1/workloads/{namespace}/{name}", For.GROUP, remove, "stop managing; give its settings back"),
    Route("POST", "/v1/adopt", For.GROUP, adopt, "manage a unit, a cgroup or a process where it is"),
    Route("GET", "/v1/doctor", For.ANYONE, doctor, "what this machine can enforce, or what it needs"),
    Route("GET", "/v1/explain", For.ANYONE, explain, "?target=&knob=: why a setting is what it is"),
    Route("GET", "/v1/top", For.ANYONE, top, "usage of the node and of every workload"),
    Route("GET", "/v1/holds", For.ANYONE, holds, "Hold objects in force"),
    Route("POST", "/v1/holds", For.GROUP, hold, "freeze settings of a target"),
    Route("DELETE", "/v1/holds", For.GROUP, release, "?target=&knobs=a,b: end holds"),
    Route("GET", "/v1/journal", For.ANYONE, journal, "original values of everything written"),
    Route("GET", "/v1/drift", For.ANYONE, drift, "what someone else changed"),
    Route("POST", "/v1/arm", For.ROOT, arm, "write decisions"),
    Route("POST", "/v1/disarm", For.ROOT, disarm, "{revert}: write nothing"),
    Route("POST", "/v1/revert", For.ROOT, revert, "{force}: every original value back, and disarm"),
    Route("POST", "/v1/stop", For.ROOT, stop, "{revert, handover}: end the agent"),
    Route("POST", "/v1/reload", For.ROOT, reload, "read the configuration again"),
    Route("POST", "/v1/plan", For.ANYONE, plan, "{objects, node}: what would be written; touches nothing"),
)
ROUTES: Final[Mapping[str, Route]] = {f"{r.method} {r.path}": r for r in _ROUTES}


def find(method: str, path: str) -> tuple[Route | Response, dict[str, str]]:
    """The route and the arguments in its path; a refusal when there is none."""
    allowed = []
    for route in ROUTES.values():
        arguments = _match(route.path, path)
        if arguments is None:
            continue
        if route.method == method:
            return route, arguments
        allowed.append(route.method)
    if allowed:
        return server.refuse(405, f"{cut(path)} takes {', '.join(allowed)}"), {}
    return server.refuse(404, f"there is no {cut(path)}; GET /v1 lists the routes"), {}


def _match(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    variables: dict[str, str] = {}
    for want, have in zip(wanted, given, strict=True):
        if want.startswith("{") and have:
            variables[want[1:-1]] = have
        elif want != have:
            return None
    return variables


def _body(request: Request, into: type[S]) -> S:
    """Strictly decoded; no body is an empty object."""
    return schema.parse_once(request.body or b"{}", into)
