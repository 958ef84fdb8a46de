"""`top`: what people see of usage and floors, and a live screen on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from typing import Any

import pytest

from j10ce.cli.look.live import ENTER, HOME, LEAVE
from j10ce.cli.look.top import listing
from tests.cli.session import PATIENCE_S, Session, eventually

NODE = {
    "name": "here",
    "cpus": 2,
    "cpu": 1.5,
    "memory": 1 << 30,
    "memoryTotal": 4 << 30,
    "pressure": {"cpu": 0.4, "memory": 0.0, "io": 0.03},
}


def workload(name: str, **other: Any) -> dict[str, Any]:
    none = {"cpu": 0, "memory": 0}
    return {
        "namespace": "default", "name": name, "profile": "ls", "tier": "sensitive", "cpu": 0.0, "memory": 0.0,
        "floor": none, "effective": none, "pressure": None, "throttled": 0.0, "cgroup": "", **other,
    }  # fmt: skip


WEB = workload(
    "web", cpu=0.025, memory=13 << 20, floor={"cpu": 500, "memory": 256 << 20}, effective={"cpu": 760.0, "memory": 0.0}
)
MIB = 1 << 20
DB = workload("db", cpu=1.2, memory=5 << 20, pressure=0.5)


def shown(*workloads: dict[str, Any], **options: Any) -> list[str]:
    return listing({"node": NODE, "workloads": list(workloads)}, wide=False, **options).splitlines()


def test_a_floor_that_is_not_effective_shows_what_is_kept_of_it() -> None:
    assert shown(WEB)[-1].split() == ["web", "ls", "25m", "500m", "13Mi", "0/256Mi", "-", "0%"]


def test_a_floor_that_nobody_has_judged_yet_shows_as_promised() -> None:
    assert "0/" not in shown({**WEB, "effective": None})[-1]


def test_the_node_has_bars_in_the_same_units() -> None:
    lines = shown(WEB)
    assert lines[0] == "node here, waiting for cpu 40%, memory 0%, io 3% of the time"
    assert lines[1] == "cpu     [###############.....]  1500m of 2"
    assert lines[2] == "memory  [#####...............]  1Gi of 4Gi"


def test_rates_have_columns_where_somebody_has_some() -> None:
    api = workload("api", floor={"cpu": 0, "memory": 0, "network": 10**8}, rates={"egress": 3.5e7, "diskRead": 1 << 20})
    lines = shown(api, WEB)
    assert lines[-3].split()[8:] == ["NET-OUT", "FLOOR-NET", "DISK-READ"]
    assert {tuple(line.split()[-3:]) for line in lines[-2:]} == {("35Mbit", "100Mbit", "1Mi"), ("-", "-", "-")}


def test_the_node_has_a_bar_for_each_managed_link() -> None:
    links = [
        {"name": "eth0", "capacity": 1e9, "egress": 5e8, "ingress": 1e6},
        {"name": "eth1", "capacity": None, "egress": 1e6, "ingress": 0.0},
    ]
    lines = listing({"node": {**NODE, "links": links}, "workloads": []}, wide=False).splitlines()
    assert lines[3] == "eth0    [##########..........]  500Mbit out, 1Mbit in of 1Gbit each"
    assert lines[4] == "eth1    [....................]  1Mbit out, 0bit in; its speed is unknown"


def test_the_node_has_a_bar_for_each_managed_disk_as_full_as_it_is_busy() -> None:
    disks = [
        {"name": "sda", "read": 40 * MIB, "write": MIB, "busy": 0.5, "readCapacity": 400 * MIB, "writeCapacity": None},
        {"name": "sdb", "read": 0.0, "write": 0.0, "busy": None, "readCapacity": None, "writeCapacity": None},
    ]
    lines = listing({"node": {**NODE, "disks": disks}, "workloads": []}, wide=False).splitlines()
    assert lines[3] == "sda     [##########..........]  40Mi of 400Mi read, 1Mi written"
    assert lines[4] == "sdb     [....................]  0 read, 0 written"


def test_floors_of_disks_and_who_waits_for_them_have_columns() -> None:
    floor = {"cpu": 0, "memory": 0, "diskRead": 50 * MIB}
    db = workload("db", floor=floor, rates={"diskRead": 20 * MIB, "diskWrite": MIB}, ioPressure=0.25)
    lines = shown(db, WEB)
    assert lines[-3].split()[8:] == ["DISK-READ", "FLOOR-READ", "DISK-WRITE", "IO-WAIT"]
    assert {tuple(line.split()[-4:]) for line in lines[-2:]} == {("20Mi", "50Mi", "1Mi", "25%"), ("-",) * 4}


@pytest.mark.parametrize(("order", "first"), [("c", "db"), ("m", "web"), ("n", "db"), ("w", "db")])
def test_keys_sort(order: str, first: str) -> None:
    assert shown(WEB, DB, order=order)[-2].split()[0] == first


class Terminal:
    """A command on a terminal of 24 lines and 100 columns; what it shows, and keys for it."""

    def __init__(self, stack: Session, *words: str) -> None:
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        environ = {**stack.environ, "TERM": "xterm"} | {"COLUMNS": "100", "LINES": "24"}
        self.before = termios.tcgetattr(theirs)
        self.child = subprocess.Popen(
            stack.command(*words), env=environ, stdin=theirs, stdout=theirs, stderr=theirs, cwd=stack.clone,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        stack.started.append(self.child)  # type: ignore[arg-type]
        self.theirs, self.text = theirs, ""
        os.set_blocking(self.fd, False)

    def shows(self, text: str, times: int = 1) -> bool:
        return eventually(lambda: self._read().count(text) >= times)

    def _read(self) -> str:
        try:
            self.text += os.read(self.fd, 65536).decode()
        except BlockingIOError:
            pass  # nothing new
        return self.text

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())


@pytest.mark.host
@pytest.mark.parametrize(("keys", "code"), [("q", 0), ("\x03", 130)], ids=["q", "Ctrl-C"])
def test_on_a_terminal_it_is_live_until_a_key_ends_it(stack: Session, keys: str, code: int) -> None:
    screen = Terminal(stack, "top")
    assert screen.shows("q quits")
    frames = screen.text.count(HOME)
    screen.type("n")
    assert screen.shows(HOME, frames + 1)
    assert "\x1b[2J" not in screen.text  # the whole screen is never cleared
    screen.type(keys)
    assert screen.shows(LEAVE)
    assert screen.child.wait(PATIENCE_S) == code
    assert screen.text.startswith(ENTER)
    assert termios.tcgetattr(screen.theirs) == screen.before


@pytest.mark.host
def test_into_a_pipe_it_is_printed_once(stack: Session) -> None:
    assert stack.says("top").startswith("node ")
    assert "\x1b" not in stack.says("top")


@pytest.mark.host
def test_status_speaks_common_words_and_has_objects_for_machines(stack: Session) -> None:
    assert "writes (armed)" in stack.says("status")
    assert "control plane" in stack.says("status")
    assert set(stack.json("status")["free"]) >= {"cpu", "memory"}


def test_who_suffers_stands_below_with_who_causes_it_and_what_is_done() -> None:
    pair = {"victim": "default/web", "antagonist": "shop/db", "resource": "cpu", "action": "observed"}
    pair |= {"suffering": "waits 40% of the time for a CPU, usually 2%", "evidence": "correlation 0.81"}
    lines = listing({"node": NODE, "workloads": [WEB], "interference": [pair]}, wide=False).splitlines()
    assert lines[-2].split() == ["SUFFERS", "FROM", "OVER", "DONE", "WHY"]
    assert lines[-1].split()[:4] == ["web", "shop/db", "cpu", "observed"]
    assert "SUFFERS" not in listing({"node": NODE, "workloads": [WEB], "interference": []}, wide=False)
