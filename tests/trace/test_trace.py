"""From a request at the API through the store to the node: one trace, in a real collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from j10ce.errors import Unsupported
from j10ce.manager.telemetry import trace
from j10ce.manager.telemetry.trace import Silent, open_tracer, titled, worthwhile
from tests.agent.process import AgentProcess, eventually
from tests.fleet.managers import BASE, policies, reservation
from tests.manager.process import Running, end, start
from tests.trace.collector import Collector

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WHEN = "2026-01-01T00:00:00Z"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as one:
        yield one


@pytest.fixture
def manager(tmp_path: Path, collector: Collector) -> Iterator[Running]:
    one = start(tmp_path, "--otel-endpoint", collector.url)
    yield one
    end(one.process)


def traced(obj: Any) -> str:
    return str(obj["metadata"].get("annotations", {}).get("j10ce.io/traceparent", ""))


def ids(trace: str) -> tuple[str, str]:
    """Of a trace and of a span in it."""
    _, of_trace, of_span, _ = trace.split("-")
    return of_trace, of_span


def test_a_write_is_a_request_with_a_write_of_the_store_in_it(manager: Running, collector: Collector) -> None:
    with manager.client() as api:
        made = api.post(policies(), json=reservation("db", cpu="1")).json()
    assert manager.stop() == 0
    (request,) = collector.named("POST minimalreservationpolicies")
    (written,) = (s for s in collector.named("store.put") if s.parent == request.span)
    assert request.facts["http.response.status_code"] == "201"
    assert (written.facts["j10ce.kind"], written.facts["j10ce.name"]) == ("MinimalReservationPolicy", "db")
    assert ids(traced(made)) == (written.trace, written.span)
    assert collector.services == {"j10ce-qos-controller-manager"}


def test_a_callers_trace_goes_on_and_makes_a_read_worth_telling(manager: Running, collector: Collector) -> None:
    with manager.client() as api:
        api.get(f"{BASE}/qosprofiles")
        api.get(f"{BASE}/qosprofiles/ls", headers={"traceparent": CALLER})
    assert manager.stop() == 0
    (read,) = collector.named("GET qosprofiles")
    assert (read.trace, read.parent) == ids(CALLER)


def test_a_write_that_changes_nothing_leaves_no_mark(manager: Running) -> None:
    with manager.client() as api:
        made = api.post(policies(), json=reservation("db", cpu="1")).json()
        same = api.put(f"{policies()}/db", json=made).json()
        del made["metadata"]["annotations"]
        moved = api.patch(
            f"{policies()}/db", json={"spec": {"units": 2}}, headers={"content-type": "application/merge-patch+json"}
        ).json()
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert traced(moved) not in ("", traced(same))


def test_what_a_node_reports_to_have_done_ends_the_trace(manager: Running, collector: Collector) -> None:
    with manager.client() as api:
        made = api.post(policies(), json=reservation("db", cpu="1")).json()
        node = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n1"}}
        api.post(f"{BASE}/nodeqoses", json=node)
        done = {
            "source": "MinimalReservationPolicy/default/db", "generation": 1, "trace": traced(made), "writes": 3,
            "received": "2100-01-01T00:00:00Z", "applied": "2100-01-01T00:00:02Z",
        }  # fmt: skip
        behind = done | {"received": WHEN, "applied": WHEN}  # by the clock of the node, whatever it says
        for _ in range(2):  # a report that is sent again tells nothing twice
            api.put(f"{BASE}/nodeqoses/n1/status", json={**node, "status": {"node": {"applied": [done, behind]}}})
    assert manager.stop() == 0
    applied, late = collector.named("applied on node")
    assert (late.trace, late.seconds) == (applied.trace, 0.0)
    assert (applied.trace, applied.parent) == ids(traced(made))
    assert (applied.facts["j10ce.node"], applied.facts["j10ce.writes"], applied.seconds) == ("n1", "3", 2.0)


@pytest.mark.host
def test_a_real_agent_carries_the_trace_to_its_writes(
    manager: Running, collector: Collector, tmp_path: Path, clone: Path
) -> None:
    agent = AgentProcess(tmp_path / "node", "j10cetrace", clone)
    try:
        agent.start("--server", manager.server, "--token-file", str(tmp_path / "token"), "--node-name", "n1")
        agent.place("db", profile="ls", labels={"app": "db"})
        with manager.client() as api:
            api.post(policies(), json=reservation("db", cpu="100m"))
            message = f"{BASE}/nodeqoses/n1"
            assert eventually(lambda: '"applied":[' in api.get(message).text, 60)
        assert manager.stop() == 0
    finally:
        agent.clean()
    (request,) = collector.named("POST minimalreservationpolicies")
    (applied,) = collector.named("applied on node")
    assert applied.trace == request.trace
    assert int(applied.facts["j10ce.writes"]) > 0
    assert request.trace in agent.log.read_text()


@pytest.mark.parametrize(
    ("method", "path", "worth"),
    [
        pytest.param("POST", f"{BASE}/holds", True, id="a create"),
        pytest.param("DELETE", f"{BASE}/holds/x", True, id="a delete"),
        pytest.param("GET", f"{BASE}/holds", False, id="a read"),
        pytest.param("PUT", f"{BASE}/nodeqoses/n/status", False, id="a report"),
    ],
)
def test_only_what_changes_something_is_traced_unasked(method: str, path: str, worth: bool) -> None:
    assert worthwhile(method, path) is worth


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{BASE}/namespaces/payments/holds/x", "PUT holds"),
        (f"{BASE}/nodeqoses/n/status", "PUT nodeqoses"),
        ("/healthz", "PUT healthz"),
        ("/", "PUT "),
    ],
)
def test_spans_of_one_sort_share_a_name(path: str, name: str) -> None:
    assert titled("PUT", path) == name


@pytest.mark.parametrize(
    ("endpoint", "environ", "traces"),
    [
        pytest.param("", {}, False, id="nobody named a collector"),
        pytest.param("http://127.0.0.1:4318", {"OTEL_SDK_DISABLED": "true"}, False, id="switched off"),
        pytest.param("http://127.0.0.1:4318", {}, True, id="named by flag"),
        pytest.param("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True, id="named by variable"),
    ],
)
def test_tracing_begins_where_a_collector_is_named(endpoint: str, environ: dict[str, str], traces: bool) -> None:
    tracer = open_tracer(endpoint, "cp-1", environ)
    tracer.close()
    assert isinstance(tracer, Silent) is not traces


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        trace.__dict__["__builtins__"], "__import__", missing(trace.__dict__["__builtins__"]["__import__"])
    )
    with pytest.raises(Unsupported, match=r"j10ce-qos\[otel\]"):
        open_tracer("http://127.0.0.1:4318", "cp-1", {})


def missing(real: Any) -> Any:
    def import_(name: str, *more: Any) -> Any:
        if name == "j10ce.manager.telemetry.otel":
            raise ImportError(name)
        return real(name, *more)

    return import_
