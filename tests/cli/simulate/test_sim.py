"""sim: what is simulated is said by options, refused with all that is wrong, and the same seed gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from j10ce.cli.main import cli
from j10ce.errors import Invalid

EXAMPLES = Path(__file__).parents[3] / "examples/sim"
CONTENTION = str(EXAMPLES / "contention.yaml")


def sim(*words: str, api: str = "") -> Result:
    server = ["--server", api] if api else []
    return CliRunner().invoke(cli, [*server, "sim", "cluster", *words], standalone_mode=False)


def mistakes(*words: str) -> list[str]:
    result = sim(*words)
    assert isinstance(result.exception, Invalid), result.exception
    return [str(finding) for finding in result.exception.findings]


def plain(*words: str, api: str = "") -> Any:
    result = sim(*words, "-o", "json", api=api)
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    words = ("-f", CONTENTION, "--policy", "priority", "--seeds", "2", "--what-if", "nodes=-1", "-o", "json")
    pictures = [tmp_path / "a.svg", tmp_path / "b.svg"]
    first, again = (sim(*words, "--plot", str(picture)) for picture in pictures)
    assert first.stdout == again.stdout
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    other = sim(*words, "--seed", "5")
    assert first.stdout != other.stdout


def test_tables_show_classes_totals_changes_and_the_worst_owners() -> None:
    result = sim("-f", CONTENTION, "--policy", "priority", "--what-if", "nodes=-50%", "--owners", "2")
    tables = result.stdout.split("\n\n")
    assert [table.split()[0] for table in tables] == ["POLICY", "POLICY", "WHAT-IF", "POLICY"]
    assert len(tables[3].splitlines()) == 5
    assert "nodes=-50%" in tables[2]
    assert result.stderr.splitlines() == ["priority, seed 1: 100%", "priority, nodes=-50%, seed 1: 100%"]


def test_every_policy_comes_to_the_end_of_the_scenario_that_the_page_shows() -> None:
    outcomes = plain("-f", CONTENTION, "--policy", "lazy,classic,priority")["outcomes"]
    assert [outcome["policy"] for outcome in outcomes] == ["lazy", "classic", "priority"]
    lazy, *others = (outcome["totals"]["belowByAPoint"]["mean"] for outcome in outcomes)
    assert lazy == 0 < min(others), "it ends with a period of lazy; within one an owner may be behind"


def test_a_trace_runs_on_nodes_of_a_number_until_its_last_row_is_done() -> None:
    trace = plain(
        "--trace", str(EXAMPLES / "trace.csv"), "--nodes", "2", "--policy", "priority", "--what-if", "slo.web=0.5"
    )
    assert trace["horizonSeconds"] == 310
    web = {o["whatIf"]: o["classes"]["web"]["penalty"]["mean"] for o in trace["outcomes"]}
    assert web == {"": 0, "slo.web=0.5": 0}
    assert {o["slo"] for o in trace["outcomes"][1]["owners"] if o["class"] == "web"} == {0.5}


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        pytest.param([], "nothing to simulate, or too much", id="nothing"),
        pytest.param(["--live", "-f", CONTENTION], "nothing to simulate, or too much", id="both"),
        pytest.param(["--trace", str(EXAMPLES / "trace.csv")], "has no nodes", id="no nodes"),
        pytest.param(["-f", CONTENTION, "--policy", "lasy"], "no such policy; did you mean lazy?", id="policy"),
        pytest.param(["-f", CONTENTION, "--what-if", "slo.gold=2"], "not a share of time", id="what-if"),
        pytest.param(["-f", CONTENTION, "--horizon", "5"], "not a duration", id="horizon"),
        pytest.param(["-f", CONTENTION, "--horizon", "0s"], "not a horizon", id="no time"),
    ],
)
def test_what_cannot_be_simulated_is_refused(words: list[str], mistake: str) -> None:
    assert any(mistake in line for line in mistakes(*words))


def test_what_is_wrong_with_all_what_ifs_is_said_at_once() -> None:
    wishes = ("--what-if", "slo.gold=x", "--what-if", "drain=nobody,nodes=0")
    assert [line.partition(" =")[0] for line in mistakes("-f", CONTENTION, *wishes)] == [
        "--what-if slo.gold=x", "--what-if drain=nobody", "--what-if nodes=0",
    ]  # fmt: skip


def meta(name: str, *owners: tuple[str, str], namespace: str = "shop") -> dict[str, Any]:
    references = [{"apiVersion": "v1", "kind": k, "name": n, "uid": n, "controller": True} for k, n in owners]
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "ownerReferences": references}


def live_pod(name: str, node: str, *owners: tuple[str, str], namespace: str = "shop") -> dict[str, Any]:
    requests = {"cpu": "1", "memory": "1Gi"}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    status = {"phase": "Running" if node else "Pending"}
    return {"metadata": meta(name, *owners, namespace=namespace), "spec": spec, "status": status}


def live_node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}}


SET = ("ReplicaSet", "web-1")
OBJECTS = {
    "/api/v1/nodes": [live_node("node-1"), live_node("node-2")],
    "/apis/apps/v1/deployments": [
        {"metadata": meta("web") | {"annotations": {"slo": "0.9"}}, "spec": {"replicas": 3}},
    ],
    "/apis/apps/v1/replicasets": [{"metadata": meta("web-1", ("Deployment", "web")), "spec": {"replicas": 3}}],
    "/api/v1/pods": [
        live_pod("web-a", "node-1", SET),
        live_pod("web-b", "node-2", SET),
        live_pod("web-c", "", SET),
        live_pod("alone", "node-1"),
        live_pod("dns", "node-2", ("DaemonSet", "dns"), namespace="kube-system"),
    ],
}  # fmt: skip


class Api(BaseHTTPRequestHandler):
    """One object on each page."""

    objects: ClassVar[dict[str, list[Any]]] = OBJECTS

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        items = self.objects.get(at.path, [])
        start = int(parse_qs(at.query).get("continue", ["0"])[0])
        more = {"continue": str(start + 1)} if start + 1 < len(items) else {}
        body = json.dumps({"kind": "List", "metadata": more, "items": items[start : start + 1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def api() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Api)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_live_cluster_goes_on_from_where_it_is(api: str) -> None:
    outcomes = plain("--live", "--policy", "priority", "--what-if", "drain=node-2", "--what-if", "nodes=+1", api=api)
    one, drained, wider = outcomes["outcomes"]
    assert outcomes["horizonSeconds"] == 3600
    assert [(o["name"], o["slo"], o["starts"], o["preemptions"]) for o in one["owners"]] == [("shop/web", 0.9, 0, 0)]
    assert one["owners"][0]["availability"] == pytest.approx(2 / 3, abs=1e-6)
    assert drained["owners"][0]["availability"] == pytest.approx(1 / 3, abs=1e-6)
    assert drained["owners"][0]["preemptions"] == 1
    assert wider["owners"][0]["availability"] == 1.0
