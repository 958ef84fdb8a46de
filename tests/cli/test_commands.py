"""Every command: found, documented, with an example that names real commands and options."""

import asyncio
import re
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from j10ce.cli.host.up import Stack
from j10ce.cli.main import COMMANDS, cli
from j10ce.cli.output import report
from j10ce.cli.peers import find_kind
from j10ce.errors import Busy, Conflict, Denied, Finding, Invalid, NotFound, QosError, Unreachable
from j10ce.http.status import ANSWERS
from j10ce.policy.profiles import builtin
from j10ce.store.schemes import open_store


def every_command() -> list[tuple[str, click.Command]]:
    ctx = click.Context(cli)
    out: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = cli.get_command(ctx, name)
        assert command is not None, name
        out.append((name, command))
        if isinstance(command, click.Group):
            out += [(f"{name} {sub}", command.commands[sub]) for sub in command.commands]
    return out


@pytest.mark.parametrize(("name", "command"), [pytest.param(n, c, id=n) for n, c in every_command()])
def test_help_has_an_example_that_parses(name: str, command: click.Command) -> None:
    text = CliRunner().invoke(cli, [*name.split(), "--help"]).output
    examples = re.findall(r"^\s+j10ce-qos (.+?)(?:\s+[#>|].*)?$", text.partition("Example:")[2], re.MULTILINE)
    assert examples, text
    for example in examples:
        words = shlex.split(example)
        leaf: click.Command = cli
        ctx = click.Context(cli)
        while isinstance(leaf, click.Group):
            subcommand = leaf.get_command(ctx, words.pop(0))
            assert subcommand is not None, example
            leaf = subcommand
        ctx = leaf.make_context("x", list(words), resilient_parsing=False)
        assert ctx.params is not None


def test_up_beyond_loopback_is_refused_with_what_up_itself_can_do() -> None:
    result = CliRunner().invoke(cli, ["up", "--listen", "0.0.0.0:7443"], standalone_mode=False)
    assert isinstance(result.exception, Denied)
    message = str(result.exception)
    assert message.startswith("0.0.0.0:7443 is not loopback, and `up` serves this host alone: listen on 127.0.0.1")
    options = {o for p in dict(every_command())["up"].params for o in p.opts}
    assert set(re.findall(r"--[a-z-]+", message)) <= options


@pytest.mark.parametrize("command", ["backup", "restore", "migrate"])
def test_examples_name_the_store_that_up_makes(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("j10ce.cli.host.up.start", lambda argv, *_: started.extend(argv))
    dirs = SimpleNamespace(state=Path("/var/lib/j10ce-qos"), token="", kubeconfig="", socket="")
    Stack(SimpleNamespace(dirs=dirs), "127.0.0.1:7443")._manager()  # type: ignore[arg-type]
    made = next(word.rpartition("/")[2] for word in started if word.startswith("sqlite:"))
    named = re.findall(r"sqlite:///var/lib/\S+/(\S+)", CliRunner().invoke(cli, [command, "--help"]).output)
    assert named
    assert set(named) == {made}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Invalid([Finding("spec", 1, "wrong")]), 3),
        (Unreachable("x"), 4),
        (Denied("x"), 5),
        (NotFound("x"), 6),
        (Conflict("x"), 7),
        (Busy("x"), 7),
        (QosError("x"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: QosError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(error) == code
    assert capsys.readouterr().err.startswith("error: ")
    assert {row.exit_code for row in ANSWERS} == {1, 3, 4, 5, 6, 7}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["migrate", "a", "sqlite:///b"], "SOURCE = 'a': unknown store"),
        (["hold", "web", "cpu.max", "--why", "x", "--for", "banana"], "--for = 'banana': not a duration"),
        (["place", "--for", "banana", "-f", "examples/fleet/workload.yaml"], "--for = 'banana': not a duration"),
        (["token", "create", "a", "--role", "viewer", "--for", "banana"], "--for = 'banana': not a duration"),
        (["certs", "init", "--dir", "/nonexistent", "--for", "10"], "--for = '10': not a duration"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_value_is_reported_with_what_was_typed(words: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert says in str(result.exception)
    assert "(root)" not in str(result.exception)


def furnished(folder: Path) -> str:
    """The address of a store with one profile in it."""
    made = f"sqlite://{folder}/store.sqlite"

    async def furnish() -> None:
        store = open_store(made, lambda: 0.0)
        await store.put(builtin()[0])
        await store.close()

    asyncio.run(furnish())
    return made


def test_migrate_names_the_target_that_is_no_store(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["migrate", furnished(tmp_path), "b"], standalone_mode=False)
    assert "TARGET = 'b': unknown store" in str(result.exception)


REVERTED = {"armed": False, "restored": 3, "removed": 1, "left": [], "kept": []}
HELD = {"setting": "workload/default/web cpu.max", "reason": "held at 50ms by ann"}


@pytest.mark.parametrize("words", [["revert"], ["disarm", "--revert"]], ids=" ".join)
@pytest.mark.parametrize(
    ("left", "code", "says"),
    [
        pytest.param(
            [], 0, "3 settings restored, 0 left alone, 1 cgroup removed\ndisarmed: nothing is written", id="all"
        ),
        pytest.param([HELD], 1, "workload/default/web cpu.max   held at 50ms by ann", id="all but a held one"),
    ],
)
def test_whoever_gives_values_back_names_those_that_are_left(
    words: list[str], left: list[dict[str, str]], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("j10ce.cli.client.Client.post", lambda *_: {**REVERTED, "left": left})
    result = CliRunner().invoke(cli, words)
    assert says in result.output
    assert result.exit_code == code


@pytest.mark.parametrize(
    ("ended", "left", "code", "says"),
    [
        pytest.param(0, [], 0, ["done"], id="well"),
        pytest.param(1, [HELD], 1, ["left alone: ", "`j10ce-qos revert --force`"], id="with something left"),
        pytest.param(1, [], 0, ["the agent ended with code 1; see ", "done"], id="by an error"),
        pytest.param(-9, [], 0, ["the agent ended with code -9; see ", "done"], id="killed, as it hung"),
        pytest.param(
            -9, [HELD], 1, ["the agent ended with code -9; see ", "left alone: ", "`"], id="killed, and a hold"
        ),
    ],
)
def test_ctrl_c_of_up_says_how_its_agent_ended(
    ended: int,
    left: list[dict[str, str]],
    code: int,
    says: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dirs = SimpleNamespace(run=tmp_path, kubeconfig=tmp_path / "kubeconfig", token=tmp_path / "token")
    agent = SimpleNamespace(get=lambda _: {"items": []})
    peers = SimpleNamespace(dirs=dirs, agent=lambda timeout: agent, revert=lambda force: {"left": left})
    stack = Stack(peers, "127.0.0.1:7443")  # type: ignore[arg-type]
    stack.agent = stack.manager = SimpleNamespace(poll=lambda: ended, wait=lambda timeout: ended)  # type: ignore[assignment]
    assert stack.stop(revert=True) == code
    output = capsys.readouterr().out.splitlines()[2:]
    assert [line.startswith(start) for line, start in zip(output, says, strict=True)] == [True] * len(says)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    out = CliRunner().invoke(cli, ["completion", shell])
    assert out.exit_code == 0
    assert "_J10CE_QOS_COMPLETE" in out.output


@pytest.mark.parametrize("text", ["qosprofiles", "QoSProfile", "qp", "QOSPROFILE"])
def test_a_kind_goes_by_any_of_its_names(text: str) -> None:
    assert find_kind(text).name == "QoSProfile"


@pytest.mark.parametrize(
    ("module", "spares"),
    [
        pytest.param("main", ["j10ce.cli.peers", "msgspec", "h11"], id="--help loads no command"),
        pytest.param(
            "host.workloads",
            ["yaml", "http.client", "ssl", "asyncio", "j10ce.agent.ring.ring"],
            id="run loads the least",
        ),
    ],
)
def test_a_command_loads_only_what_it_needs(module: str, spares: list[str], python: str, clone: Path) -> None:
    code = f"import sys, j10ce.cli.{module}; print(sorted(set({spares!r}) & set(sys.modules)))"
    output = subprocess.run(
        [python, "-c", code], env={"PYTHONPATH": str(clone / "src")}, capture_output=True, check=True
    )
    assert output.stdout == b"[]\n"


HEAVY = (
    *("asyncio", "cryptography", "grpc", "h11", "http.client", "importlib.metadata", "json", "logging", "msgspec"),
    *("multiprocessing", "numpy", "socket", "sqlite3", "ssl", "starlette", "structlog", "subprocess", "urllib", "yaml"),
    *("j10ce.cli.client", "j10ce.cli.peers", "j10ce.http", "j10ce.manager", "j10ce.model", "j10ce.policy"),
)


@pytest.mark.parametrize("said", [["--help"], ["--version"], []], ids=" ".join)
def test_help_is_shown_without_what_commands_need(said: list[str], python: str, clone: Path) -> None:
    """A shell that completes, and a person who reads, wait for nothing that only a command needs."""
    code = (
        "import sys\nfrom j10ce.cli.main import main\n"
        f"sys.argv = ['j10ce-qos', *{said!r}]\n"
        "try: main()\n"
        f"finally: print('loaded', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    output = subprocess.run([python, "-c", code], env={"PYTHONPATH": str(clone / "src")}, capture_output=True)
    assert output.stdout.endswith(b"loaded []\n"), output


def test_the_help_of_every_command_is_in_the_table_in_one_line() -> None:
    text = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    for name, (_, does) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(does)}$", text, re.MULTILINE), name


def test_output_for_a_terminal_that_knows_ascii_alone_is_no_error(python: str, clone: Path) -> None:
    code = "from j10ce.cli.main import main; import sys; sys.argv[1:] = ['doctor', '-o', 'json']; main()"
    environ = {"PYTHONPATH": str(clone / "src"), "PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([python, "-c", code], env=environ, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_backup_is_checked_without_a_store_and_restored_with_one_alone(tmp_path: Path) -> None:
    file = tmp_path / "objects.jsonl"
    assert CliRunner().invoke(cli, ["backup", str(file), "--store", furnished(tmp_path)]).exit_code == 0
    checked = CliRunner().invoke(cli, ["restore", str(file), "--dry-run"])
    assert re.fullmatch(rf"{file}: 1 QoSProfile at revision \d+, whole and consistent\n", checked.output)
    refused = CliRunner().invoke(cli, ["restore", str(file)])
    assert "name where to with --store: " in refused.output
    assert refused.exit_code == 2


@pytest.mark.parametrize("slashes", ["///", "////"])
def test_a_store_file_that_is_not_there_is_named_by_its_path(tmp_path: Path, slashes: str) -> None:
    words = ["backup", str(tmp_path / "o.jsonl"), "--store", f"sqlite:{slashes}{str(tmp_path).lstrip('/')}/no.db"]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(result.exception, NotFound)
    assert str(result.exception) == f"there is no {tmp_path}/no.db; check the path"


def test_a_kubeconfig_for_what_is_no_address_is_refused_before_there_is_a_token(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    words = ["certs", "kubeconfig", "--dir", str(tmp_path), "--server", "cp1.example:7443"]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(result.exception, Invalid)
    assert "--server = 'cp1.example:7443': not an address; write it as" in str(result.exception)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ca.crt"]
