"""One QEMU guest: boot it, pass its console on, return how the command ended."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab import own_kernel
from tests.lab.guest import Cgroup, scripts
from tests.lab.initrd import initrd
from tests.lab.kernel import Kernel, kernel, tool

CLONE = Path(__file__).resolve().parents[2]
BOOT_ATTEMPTS = 3
TIMED_OUT = 124
NO_GUEST = 125
ONE_CORE = ",sockets=1,cores=1"


class Machine(NamedTuple):
    cgroup: Cgroup
    cpus: int = 2
    memory_mib: int = 2048
    disks_mib: Sequence[int] = ()
    disk_bps: int = 0  # what each of them does in a second, reads and writes together; 0: as much as it can
    timeout_s: float = 900.0
    verbose: bool = False
    hyperthreads: bool = False  # the CPUs are those of one core, and the kernel is our own, which schedules by core


class Ending(NamedTuple):
    status: int
    booted_after_s: float | None


def run(machine: Machine, command: Sequence[str], env: dict[str, str], results: Path) -> int:
    """The command's exit status; `TIMED_OUT`, or `NO_GUEST` when it would not boot or died.

    The command finds `results` as /mnt.  A boot that never reaches the command is tried again: emulated SMP
    hangs about once in a hundred boots on a busy machine.
    """
    chosen = own_kernel.kernel() if machine.hyperthreads else kernel()
    env = env | {
        "J10CE_LAB": machine.cgroup.value,
        "LAB_CLONE": str(CLONE),
        "LAB_MODULES": str(chosen.modules),
    }
    ending = Ending(NO_GUEST, None)
    for attempt in range(1, BOOT_ATTEMPTS + 1):
        ending = boot(machine, chosen, results, scripts(machine.cgroup, command, env))
        if ending.booted_after_s is not None:
            break
        print(f"lab: boot {attempt} of {BOOT_ATTEMPTS} failed", file=sys.stderr, flush=True)
    report(machine, chosen, ending)
    return ending.status


def boot(machine: Machine, chosen: Kernel, results: Path, files: dict[str, str]) -> Ending:
    for name in ("booted", "status"):
        (results / name).unlink(missing_ok=True)
    for name, text in files.items():
        (results / name).write_text(text)
    scratch = Path(tempfile.mkdtemp(prefix="j10ce-lab-"))
    try:
        return follow(machine, qemu(machine, chosen, results, scratch), results, scratch / "console")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def qemu(machine: Machine, chosen: Kernel, results: Path, scratch: Path) -> list[str]:
    """q35 with a Nehalem CPU: the fancier choices (microvm, -cpu max) hang or panic now and then under emulation."""
    (scratch / "initrd").write_bytes(initrd(chosen))
    console = "loglevel=7" if machine.verbose else "quiet loglevel=1 systemd.show_status=no"
    # fmt: off
    command = [
        tool("qemu-system-x86_64"), "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "Nehalem",
        "-smp", f"{machine.cpus}{ONE_CORE if machine.hyperthreads else ''}", "-m", str(machine.memory_mib),
        "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-chardev", f"file,id=console,path={scratch}/console", "-serial", "chardev:console",
        "-kernel", str(chosen.image), "-initrd", f"{scratch}/initrd",
        "-append", f"console=ttyS0 {console} panic=-1 mitigations=off psi=1 nokaslr cryptomgr.notests",
        *share("root", Path("/"), ",readonly=on,multidevs=remap"),
        *share("clone", CLONE, ",readonly=on,multidevs=remap"),
        *share("job", results, ""),
    ]
    # fmt: on
    for number, size_mib in enumerate(machine.disks_mib):
        image = scratch / f"disk{number}"
        with open(image, "wb") as file:
            file.truncate(size_mib << 20)
        pace = f",throttling.bps-total={machine.disk_bps}" if machine.disk_bps else ""
        command += ["-drive", f"file={image},format=raw,if=none,id=disk{number},cache=unsafe{pace}"]
        command += ["-device", f"virtio-blk-pci,drive=disk{number}"]
    return command


def share(tag: str, path: Path, options: str) -> list[str]:
    files = f"local,id={tag},path={path},security_model=none{options}"
    return ["-fsdev", files, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def follow(machine: Machine, command: list[str], results: Path, console: Path) -> Ending:
    boot_timeout_s = 120 if machine.cgroup is Cgroup.SYSTEMD else 60
    started = time.monotonic()
    booted_after_s: float | None = None
    shown = 0
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as guest:
        try:
            while True:
                over = guest.poll() is not None
                elapsed = time.monotonic() - started
                if booted_after_s is None and (results / "booted").exists():
                    booted_after_s = elapsed
                shown = pass_on(console, shown)
                if over:
                    return Ending(status_of(results), booted_after_s)
                if booted_after_s is None and elapsed > boot_timeout_s:
                    return Ending(NO_GUEST, None)
                if elapsed > machine.timeout_s:
                    return Ending(TIMED_OUT, booted_after_s)
                time.sleep(0.1)
        finally:
            guest.kill()


def pass_on(console: Path, shown: int) -> int:
    if not console.exists():
        return shown
    with open(console, "rb") as file:
        file.seek(shown)
        fresh = file.read()
    sys.stdout.buffer.write(fresh.replace(b"\r\n", b"\n"))
    sys.stdout.buffer.flush()
    return shown + len(fresh)


def status_of(results: Path) -> int:
    try:
        return int((results / "status").read_text())
    except (OSError, ValueError):
        return NO_GUEST


def report(machine: Machine, chosen: Kernel, ending: Ending) -> None:
    boot = "never booted" if ending.booted_after_s is None else f"booted in {ending.booted_after_s:.1f} s"
    print(f"lab: {machine.cgroup.value} guest, kernel {chosen.version}, {boot}, status {ending.status}", flush=True)
