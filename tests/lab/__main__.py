"""The lab's command line.

python -m tests.lab fetch                                       cache the kernel, etcd, two kubectls and Kubernetes
python -m tests.lab fetch --kubernetes old                      cache the control plane of v1.20.2
python -m tests.lab pytest -- tests/enforce                     plain guest, cgroup v2
python -m tests.lab pytest --cgroup v1 -- tests/enforce         or v1, or hybrid
python -m tests.lab pytest --systemd -- -k scope tests/systemd  systemd as the first process
python -m tests.lab run --systemd -- systemctl status           any command
python -m tests.lab pytest --hyperthreads -- tests/enforce      two CPUs of one core, our own kernel (built once)

Exit status: the command's; 124 after --timeout; 125 when the guest would not boot or died.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.lab.debian import PROGRAMS, program
from tests.lab.guest import Cgroup
from tests.lab.kernel import kernel
from tests.lab.kube.kubernetes import COMPONENTS, Version, binary
from tests.lab.machine import CLONE, NO_GUEST, Machine, run

# Only what pyproject.toml configures: every further plugin costs a second of emulated import.
PLUGINS = ["-p", "pytest_timeout", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider"]
PYTEST = [str(CLONE / ".venv/bin/python"), "-m", "pytest", *PLUGINS, "--timeout=300", "--junit-xml=/mnt/junit.xml"]
PASSED_ON = ("CI",)


def main() -> int:
    options = parse(sys.argv[1:])
    if options.verb == "fetch":
        fetch(options.kubernetes)
        return 0
    machine = Machine(
        cgroup=Cgroup.SYSTEMD if options.systemd else Cgroup(options.cgroup),
        cpus=options.cpus,
        memory_mib=options.memory,
        disks_mib=options.disk,
        disk_bps=options.disk_bps,
        timeout_s=options.timeout,
        verbose=options.verbose,
        hyperthreads=options.hyperthreads,
    )
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env |= dict(item.split("=", 1) for item in options.env)
    with tempfile.TemporaryDirectory(prefix="j10ce-lab-results-") as results:
        if options.verb == "run":
            return run(machine, options.command, env, Path(results))
        return run_pytest(machine, options.command, env, Path(results))


def fetch(version: Version) -> None:
    image = kernel()
    print(f"lab: kernel {image.version} in {image.image.parent}")
    for name, *_ in PROGRAMS:
        print(f"lab: {name} in {program(name)}")
    for name in (*COMPONENTS, *(("kwok",) if version == "current" else ())):
        print(f"lab: {name} ({version}) in {binary(name, version)}", flush=True)


def run_pytest(machine: Machine, arguments: list[str], env: dict[str, str], results: Path) -> int:
    compile_sources()
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    status = run(machine, [*PYTEST, *arguments], env, results)
    junit = results / "junit.xml"
    if not junit.exists():
        return status or NO_GUEST
    suite = next(ElementTree.parse(junit).iter("testsuite"))
    counts = ", ".join(f"{suite.get(name)} {name}" for name in ("tests", "failures", "errors", "skipped"))
    print(f"lab: {counts}", flush=True)
    return status


def compile_sources() -> None:
    """The guest cannot write byte code back, and compiling there is slow."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], cwd=CLONE, check=False)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests.lab", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetching = verbs.add_parser("fetch")
    fetching.add_argument("--kubernetes", choices=["current", "old"], default="current", help="which control plane")
    for verb in ("run", "pytest"):
        options = verbs.add_parser(verb)
        options.add_argument("--systemd", action="store_true", help="boot this machine's systemd as the first process")
        options.add_argument("--cgroup", choices=["v2", "v1", "hybrid"], default="v2", help="layout of the plain guest")
        options.add_argument("--cpus", type=int, default=2)
        options.add_argument("--memory", type=int, default=2048, metavar="MIB")
        options.add_argument("--disk", type=int, action="append", default=[], metavar="MIB", help="an empty /dev/vdX")
        options.add_argument("--disk-bps", type=int, default=0, metavar="N", help="what each does in a second")
        options.add_argument("--timeout", type=float, default=2400.0, metavar="S")
        options.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
        options.add_argument("--hyperthreads", action="store_true", help="of one core, with a kernel of our own")
        options.add_argument("--verbose", action="store_true", help="show the kernel's messages")
        options.add_argument("command", nargs="+", metavar="-- ARGUMENT")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
