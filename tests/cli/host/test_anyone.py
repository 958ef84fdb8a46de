"""What needs no agent, no API or no privileges: doctor, plan, config, bundle, plugins, completion, `up` as nobody."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.cli.session import AS_NOBODY, NOBODY, PATIENCE_S, Ended, Session, cgroup, eventually, free_port

pytestmark = pytest.mark.host


class Nobody:
    """A user without rights and with a home of its own."""

    def __init__(self, cli: Session) -> None:
        self.cli = cli
        self.home = cli.folder / "home"
        self.home.mkdir()
        os.chown(self.home, NOBODY, NOBODY)
        for folder in (cli.folder, *cli.folder.parents[:2]):
            folder.chmod(0o755)
        kept = {k: cli.environ[k] for k in ("PATH", "PYTHONPATH", "J10CE_TOP", "J10CE_CONFIG_DIR")}
        self.environ = {**kept, "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, *words: str) -> list[str]:
        return [*AS_NOBODY, *self.cli.command(*words)]

    def __call__(self, *words: str) -> Ended:
        ended = subprocess.run(
            self.command(*words), env=self.environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            cwd=self.cli.clone,
        )  # fmt: skip
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended


@pytest.fixture
def nobody(cli: Session) -> Nobody:
    return Nobody(cli)


def test_without_privileges_up_runs_unarmed_and_says_so_in_one_line(cli: Session, nobody: Nobody) -> None:
    out = cli.folder / "up.out"
    with out.open("w") as printed:
        words = nobody.command("up", "--listen", f"127.0.0.1:{free_port()}")
        up = subprocess.Popen(words, env=nobody.environ, stdout=printed, stderr=printed, text=True, cwd=cli.clone)
    cli.started.append(up)
    assert eventually(lambda: "explain web" in out.read_text() or up.poll() is not None)
    (line,) = (line for line in out.read_text().splitlines() if "it plans and explains" in line)
    assert line.startswith("read-only (not armed): it plans and explains, and writes nothing; not root: uid ")
    assert line.endswith(f"not root: uid {NOBODY} cannot write /sys/fs/cgroup/cpu; use sudo")
    assert "could enforce as root: " in out.read_text()
    ran = nobody("run", "--name", "web", "--profile", "ls", "--", "echo", "runs")
    assert (ran.returncode, ran.stdout) == (0, "runs\n")
    assert "nothing was written: the agent is read-only (not armed): not root: uid " in ran.stderr
    ran = nobody("run", "--min-cpu", "100m", "--", "echo", "runs")
    assert (ran.returncode, ran.stdout) == (125, "")
    assert f"nothing upholds it: not root: uid {NOBODY} cannot write /sys/fs/cgroup/cpu; use sudo" in ran.stderr
    assert "profile" in nobody("explain", "group/").stdout + nobody("plan", "-f", "examples/what-if").stdout
    assert not cgroup("cpu", cli.top).exists()
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE_S) == 0


def test_beside_root_s_own_a_user_hears_nothing_of_what_root_runs(cli: Session, nobody: Nobody) -> None:
    """Same top, same names: root's are neither left over nor in the way, and their use is not shown as one's own."""
    cli.up()
    cli.running("web", "--profile", "ls")
    out = cli.folder / "up.out"
    with out.open("w") as stream:
        words = nobody.command("up", "--listen", f"127.0.0.1:{free_port()}")
        cli.started.append(subprocess.Popen(words, env=nobody.environ, stdout=stream, stderr=stream, text=True))
    assert eventually(lambda: "explain web" in out.read_text())
    assert "without QoS" not in out.read_text()
    ran = nobody("run", "--name", "web", "--profile", "ls", "--", *cli.command("get", "workloads", "-o", "json"))
    assert ran.returncode == 0, ran.stderr
    (web,) = json.loads(ran.stdout)["items"]
    assert "usage" not in web["status"]
    sleeper = subprocess.Popen([*AS_NOBODY, "sleep", "1000"], text=True)
    cli.started.append(sleeper)
    assert "stays in the cgroup that it is in" in nobody("adopt", "--pid", str(sleeper.pid)).stdout


def test_plan_needs_nothing_at_all(nobody: Nobody) -> None:
    ended = nobody("plan", "-f", "examples/what-if/")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("node imagined: cpu 4, memory 8Gi\n")
    assert "workload/default/web cpu.max = 200000 (2 CPUs)  (limits: limit 2)" in ended.stdout
    assert json.loads(nobody("plan", "-f", "examples/what-if/", "-o", "json").stdout)["text"]
    assert not (nobody.home / ".local").exists()


def test_plan_reads_what_kubernetes_makes_pods_of(nobody: Nobody) -> None:
    ended = nobody("plan", "-f", "examples/kubernetes/")
    assert ended.returncode == 0, ended.stderr
    assert "workload/payments/db: profile database, tier sensitive, floor cpu 500m, memory 512Mi\n" in ended.stdout
    assert "workload/shop/crunch: profile be" in ended.stdout


def test_a_users_configuration_is_in_the_users_own_folder(nobody: Nobody) -> None:
    own = nobody.home / ".config" / "j10ce-qos"
    own.mkdir(parents=True)
    (own / "a.yaml").write_text("perod: 1s\n")
    del nobody.environ["J10CE_CONFIG_DIR"]
    ended = nobody("config", "check")
    assert ended.returncode == 3
    assert f"{own}/a.yaml perod" in ended.stderr


def test_doctor_needs_no_agent_and_no_privileges(cli: Session, nobody: Nobody) -> None:
    for printed in (cli.says("doctor"), nobody("doctor").stdout):
        assert printed.startswith("FEATURE")
        assert "cpu.weight" in printed
        assert re.search(r"^CPUs: \d+ sockets?, \d+ cores?, \d+ threads?", printed, re.MULTILINE)
    assert cli.says("doctor").endswith(" features work here\n")
    assert "\nnothing is enforced for this user; as root " in nobody("doctor").stdout
    privileges = {c["feature"]: c["ok"] for c in json.loads(nobody("doctor", "-o", "json").stdout)["capabilities"]}
    assert privileges["privileges"] is False


@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["top"], ["explain", "web"], ["get", "workloads"], ["get", "qosprofiles"], ["disarm"], ["arm"],
        ["forget", "web"], ["hold", "web", "cpu.max", "--why", "x"], ["apply", "-f", "examples/standalone"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_with_nothing_running_it_says_what_to_start(cli: Session, words: list[str]) -> None:
    assert "j10ce-qos up" in cli.fails(4, *words)


def test_config_check_tells_every_finding_of_every_file(cli: Session) -> None:
    (cli.config_dir / "a.yaml").write_text("perod: 1s\narmed: sometimes\n")
    (cli.config_dir / "b.yaml").write_text("socketMode: '0777'\ncontrollers: {cpu-suppress: {mode: fast}}\n")
    (cli.config_dir / "c.yaml").write_text("{broken")
    output = cli.fails(3, "config", "check")
    for where, what in (
        ("a.yaml", "perod"), ("a.yaml", "armed"), ("b.yaml", "socketMode"), ("b.yaml", "cpu-suppress"), ("c.yaml", ""),
    ):  # fmt: skip
        assert any(where in line and what in line for line in output.splitlines()), (where, what, output)


def test_a_broken_configuration_does_not_disable_the_kill_switch(cli: Session) -> None:
    cli.running("web")
    (cli.config_dir / "a.yaml").write_text("armed: sometimes\n")
    ended = cli("disarm")
    assert "config check" in ended.stderr
    assert cli.json("status")["armed"] is False


def test_a_good_configuration_is_shown_as_it_is_in_force(cli: Session) -> None:
    (cli.config_dir / "a.yaml").write_text("period: 2s\n")
    assert "1 file, no findings" in cli.says("config", "check")
    shown = cli.says("config", "show")
    assert "period: 2s" in shown
    assert f"runDir: {cli.run_dir}" in shown


def test_a_bundle_has_what_a_report_needs_and_no_token(cli: Session) -> None:
    cli.up()
    cli.running("web", "--profile", "ls")
    (cli.config_dir / "a.yaml").write_text("tokenFile: /x\n# password: hunter2\n")
    token = (cli.run_dir / "token").read_text().strip()
    archive = cli.folder / "b.tar.gz"
    cli("bundle", "-O", str(archive))
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as tar:
        texts = {m.name.partition("/")[2]: tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]
    assert {"version.txt", "doctor.json", "agent/journal.json", "logs/agent.log", "config/a.yaml"} <= texts.keys()
    assert '"web"' in texts["agent/workloads.json"]
    assert not [name for name, text in texts.items() if token in text or "hunter2" in text]


def test_a_bundle_that_cannot_be_written_says_where(cli: Session) -> None:
    assert "/nonexistent/b.tgz: No such file or directory" in cli.fails(1, "bundle", "-O", "/nonexistent/b.tgz")


def test_an_installed_plugin_is_listed(cli: Session, clone: Path) -> None:
    site = cli.folder / "site"
    for template in ("plugin", "sensor", "backend", "scheduler-plugin"):
        install(clone / f"examples/{template}-template", site)
    cli.environ["PYTHONPATH"] += f":{site}"
    rows = [line.split() for line in cli.says("plugins").splitlines()]
    assert ["night-shift", "controller", "j10ce-night-shift", "0.1.0"] in rows
    assert ["CheapNodes", "scheduler", "j10ce-cheap-nodes", "0.1.0"] in rows
    assert ["NodeResourcesFit", "scheduler", "built", "in"] in rows
    assert ["heat", "sensor", "j10ce-heat", "0.1.0"] in rows
    assert ["soft-limit", "back", "end", "j10ce-soft-limit", "0.1.0"] in rows


def install(project: Path, site: Path) -> None:
    """As pip puts it there: the package, and the metadata that names its entry points."""
    body = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    shutil.copytree(project / "src", site, dirs_exist_ok=True)
    info = site / f"{body['name'].replace('-', '_')}-{body['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {body['name']}\nVersion: {body['version']}\n")
    points = [
        line for g, e in body["entry-points"].items() for line in (f"[{g}]", *(f"{k} = {v}" for k, v in e.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(points) + "\n")


@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        ("exp", "explain"),
        ("get work", "workloads"),
        ("explain living-", "living-one"),
        ("explain living-one cpu.ma", "cpu.max"),
        ("hold living-one cpu.id", "cpu.idle"),
        ("describe qosprofile guaranteed-", "guaranteed-pro"),
        ("run --profile l", "lsr"),
        ("top -o ", "wide"),
        ("config ch", "check"),
    ],
)
def test_names_complete(stack: Session, typed: str, offers: str) -> None:
    if "living" in typed and "living-one" not in stack.says("get", "workloads"):
        stack.running("living-one")
    words = ["j10ce-qos", *typed.split(" ")]
    fields = {"_J10CE_QOS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    ended = subprocess.run(
        stack.command(),
        env={**stack.environ, **fields},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert f"plain,{offers}" in ended.stdout.splitlines(), ended
