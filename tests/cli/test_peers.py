"""Where the control plane is: named, in a kubeconfig, or beside `up`; and what happens when one of several is away."""

from __future__ import annotations

import json
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from j10ce.cli import accounts
from j10ce.cli.accounts import Account
from j10ce.cli.client import Client, address
from j10ce.cli.dirs import Dirs
from j10ce.cli.host.steer import target
from j10ce.cli.main import cli
from j10ce.cli.paths import apart
from j10ce.cli.peers import Peers, find_kind
from j10ce.errors import Denied, Invalid, NotFound, Unreachable
from tests.cli.session import free_port

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class Manager(ThreadingHTTPServer):
    """Answers every request with one status, and counts them."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.asked = status, 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *how: object) -> None:
        self.shutdown()
        super().__exit__(*how)


class Handler(BaseHTTPRequestHandler):
    server: Manager

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"port": self.server.server_address[1], "message": "no"}).encode())

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def managers() -> Iterator[list[Manager]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Manager()) for _ in range(3)]


def addresses(managers: list[Manager]) -> str:
    return ",".join(m.url for m in managers)


def test_a_manager_that_is_away_is_passed_over_and_asked_last_from_then_on(managers: list[Manager]) -> None:
    client = Client(f"http://127.0.0.1:{free_port()},{addresses(managers)}")
    for _ in range(3):
        assert client.get("/apis/x")["port"] == managers[0].server_address[1]
    assert [m.asked for m in managers] == [3, 0, 0]


def test_a_read_that_one_cannot_serve_is_taken_to_the_next(managers: list[Manager]) -> None:
    managers[0].status = 503
    client = Client(addresses(managers))
    assert client.get("/apis/x")["port"] == managers[1].server_address[1]


def test_a_manager_that_takes_the_call_and_hangs_is_left_for_the_next(managers: list[Manager]) -> None:
    with socket.socket() as hung:
        hung.bind(("127.0.0.1", 0))
        hung.listen()
        where = f"http://127.0.0.1:{hung.getsockname()[1]},{addresses(managers)}"
        assert Client(where, timeout=0.2).get("/apis/x")["port"] == managers[0].server_address[1]
        client = Client(where, timeout=0.2)
        with pytest.raises(Unreachable):
            client.post("/apis/x", {})
        assert client.post("/apis/x", {})["port"] == managers[0].server_address[1]


def test_a_write_is_sent_once(managers: list[Manager]) -> None:
    managers[0].status = 503
    with pytest.raises(Unreachable):
        Client(addresses(managers)).post("/apis/x", {})
    assert [m.asked for m in managers] == [1, 0, 0]


def test_where_none_can_serve_the_last_answer_counts(managers: list[Manager]) -> None:
    for manager in managers:
        manager.status = 503
    with pytest.raises(Unreachable, match="no"):
        Client(addresses(managers)).get("/apis/x")
    assert [m.asked for m in managers] == [1, 1, 1]


def test_where_none_is_there_it_says_so() -> None:
    with pytest.raises(Unreachable):
        Client(",".join(f"http://127.0.0.1:{free_port()}" for _ in range(2))).get("/apis/x")


def config(server: str, **user: str) -> dict[str, Any]:
    return {
        "current-context": "b",
        "contexts": [
            {"name": "a", "context": {"cluster": "wrong", "user": "wrong"}},
            {"name": "b", "context": {"cluster": "fleet", "user": "me"}},
        ],
        "clusters": [
            {"name": "wrong", "cluster": {"server": "http://wrong"}},
            {"name": "fleet", "cluster": {"server": server}},
        ],
        "users": [{"name": "me", "user": user}],
    }


def written(path: Path, config_text: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config_text))
    return path


def test_the_current_context_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "config", config("https://cp:7443", token="secret"))
    assert accounts.read(path) == Account("https://cp:7443", "secret")


def test_authorities_and_tokens_may_be_data_or_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(PEM)
    (tmp_path / "token").write_text("secret\n")
    content = config("https://cp:7443", tokenFile="token", **{"client-certificate": "me.crt", "client-key": "me.key"})
    content["clusters"][1]["cluster"]["certificate-authority"] = "ca.crt"
    pair = ("a certificate", "its key")
    for file, text in zip(("me.crt", "me.key"), pair, strict=True):
        (tmp_path / file).write_text(text)
    assert accounts.read(written(tmp_path / "a", content)) == Account("https://cp:7443", "secret", PEM, pair)
    content["clusters"][1]["cluster"] = {
        "server": "https://cp:7443",
        "certificate-authority-data": b64encode(PEM.encode()).decode(),
    }
    assert accounts.read(written(tmp_path / "b", content)).ca == PEM


@pytest.mark.parametrize(
    "config_text",
    [
        pytest.param({}, id="empty"),
        pytest.param([], id="a list"),
        pytest.param({**config("x"), "current-context": "c"}, id="a context that is not there"),
        pytest.param({**config("x"), "clusters": []}, id="a cluster that is not there"),
        pytest.param({**config("x"), "users": [{"name": "other"}]}, id="a user that is not there"),
    ],
)
def test_a_broken_kubeconfig_is_a_finding(tmp_path: Path, config_text: object) -> None:
    with pytest.raises(Invalid, match="kubeconfig"):
        accounts.read(written(tmp_path / "config", config_text))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("RUN_DIR", "STATE_DIR", "CONFIG_DIR"):
        monkeypatch.setenv(f"J10CE_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def test_the_best_place_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = Peers()
    with pytest.raises(Unreachable, match="no control plane on this host"):
        peers.account()
    written(home / ".j10ce" / "kubeconfig", config("http://home"))
    assert peers.account().server == "http://home"
    monkeypatch.setenv("KUBECONFIG", f"{home}/absent:{written(home / 'mine', config('http://mine'))}")
    assert peers.account().server == "http://mine"
    written(Dirs.here().kubeconfig, config("http://up"))
    assert peers.account().server == "http://up"
    named = written(home / "named", config("http://named"))
    assert Peers(kubeconfig=str(named)).account().server == "http://named"
    assert Peers(server="http://given", kubeconfig=str(named)).account().server == "http://given"


def test_a_server_that_is_named_gets_the_token_and_the_authority_of_the_files(home: Path) -> None:
    (home / "token").write_text("secret\n")
    (home / "ca.crt").write_text(PEM)
    account = Peers("https://a:1,https://b:1", str(home / "token"), str(home / "ca.crt")).account()
    assert account == Account("https://a:1,https://b:1", "secret", PEM)


@pytest.mark.parametrize("option", ["token_file", "ca_file"])
def test_a_file_for_a_server_that_is_not_named_is_refused(home: Path, option: str) -> None:
    written(home / ".j10ce" / "kubeconfig", config("http://home"))
    with pytest.raises(Invalid, match=rf"--{option.replace('_', '-')} = 'absent': counts with --server alone"):
        Peers(**{option: "absent"}).account()


@pytest.mark.parametrize("variable", ["J10CE_TOKEN_FILE", "J10CE_CA_FILE"])
def test_a_variable_for_servers_that_are_named_now_and_then_is_no_mistake(
    home: Path, variable: str, managers: list[Manager], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home / ".j10ce" / "kubeconfig", config(managers[0].url))
    monkeypatch.setenv(variable, "absent")
    managers[0].status = 404
    asked = CliRunner().invoke(cli, ["get", "mrp", "web"], standalone_mode=False)
    assert isinstance(asked.exception, NotFound)
    named = ["--server", managers[0].url, "get", "mrp", "web"]
    assert isinstance(CliRunner().invoke(cli, named, standalone_mode=False).exception, FileNotFoundError)


def test_a_server_that_a_kubeconfig_knows_gets_its_token_and_no_other_does(home: Path) -> None:
    written(home / ".j10ce" / "kubeconfig", config("https://a:1,https://b:1", token="secret"))
    assert Peers("https://b:1").account() == Account("https://b:1", "secret")
    assert Peers("https://evil:1").account().token == ""
    assert Peers("https://a:1,https://evil:1").account().token == ""


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("minimalreservationpolicy", "payments/db", ("payments", "db")),
        ("minimalreservationpolicy", "db", ("default", "db")),
        ("qosprofile", "a/b", ("default", "a/b")),
    ],
)
def test_a_name_may_carry_its_namespace(kind: str, name: str, expected: tuple[str, str]) -> None:
    assert apart(find_kind(kind), "default", name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web", "workload/shop/web"),
        ("default/web", "workload/default/web"),
        ("workload/web", "workload/shop/web"),
        ("workload/default/web", "workload/default/web"),
        ("group/j10ce_besteffort", "group/j10ce_besteffort"),
        ("part/shop/web/main", "part/shop/web/main"),
        ("node", "node"),
    ],
)
def test_a_workload_goes_by_every_name_that_is_printed(name: str, expected: str) -> None:
    assert target("shop", name) == expected


@pytest.mark.parametrize(
    ("words", "kind", "way_in"),
    [(["get", "qp"], Denied, "use sudo"), (["status"], Unreachable, "use sudo, or join group j10ce")],
    ids=["API", "agent"],
)
def test_a_user_beside_roots_own_hears_of_it_and_how_to_use_it(
    words: list[str], kind: type[Exception], way_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group opens the agent's socket; the token of the API stays root's."""
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "agent.sock").touch(0o600)
    monkeypatch.setattr("j10ce.cli.dirs.SYSTEM_RUN", tmp_path / "system")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for name in ("RUN", "STATE", "CONFIG"):
        monkeypatch.setenv(f"J10CE_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(result.exception, kind)
    assert str(result.exception).endswith(f"; root runs one on this host: {way_in}")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("127.0.0.1:7443", "http://127.0.0.1:7443"),
        ("cp1.example:7443", "https://cp1.example:7443"),
        ("ftp://x", "http://127.0.0.1:7443"),
    ],
)
def test_an_address_without_its_scheme_is_answered_with_the_whole_one(typed: str, meant: str) -> None:
    with pytest.raises(Invalid, match=re.escape(f"not an address; write it as {meant}") + "$"):
        address(typed)


class Site(BaseHTTPRequestHandler):
    """A server that knows nothing of us, and says so to a browser."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *args: object) -> None:
        pass


def test_a_server_that_is_no_api_is_called_that_and_its_page_is_not_shown() -> None:
    with HTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.handle_request, daemon=True).start()
        with pytest.raises(Unreachable) as refused:
            Client(f"http://127.0.0.1:{site.server_port}").get("/apis/j10ce.io/v1alpha1/nodeqoses")
    assert str(refused.value).endswith("answers, but it is no j10ce-qos API; check the address")


def test_https_to_a_port_without_tls_is_answered_with_http() -> None:
    with Manager() as plain, pytest.raises(Unreachable) as refused:
        Client(plain.url.replace("http://", "https://")).get("/v1/status")
    assert str(refused.value).endswith(f"speaks http, not https; write --server {plain.url}")


def test_a_user_without_a_home_hears_how_to_name_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(Denied, match=r"run: this user may not make folders there; .*J10CE_RUN_DIR"):
        Dirs(tmp_path / "run", tmp_path / "state", tmp_path / "etc").make()
