"""Whether traffic can be divided here: tried in a network namespace that nobody else is in, and that ends at once."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Mapping
from functools import cache
from typing import Final

from j10ce.errors import QosError
from j10ce.host.files import read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.host.net import bpf
from j10ce.host.net.classes import CLASSES, NUMBER
from j10ce.host.net.links import LINK, NEW_LINK
from j10ce.host.net.netlink import Netlink, NetlinkRequest
from j10ce.kernel.net import ingress
from j10ce.kernel.net.tree import LinkTree
from j10ce.kernel.net.trees import Way
from j10ce.model.knob import Support
from j10ce.model.plan import Refused

VIA: Final = "htb"
_NEWNET: Final = 0x4000_0000
_LO: Final = 1  # the only link of a new namespace
_NET_ADMIN, _SYS_ADMIN = 12, 21
_ID: Final = 8  # bytes of a cgroup's
_RATE: Final = 125_000
_UP: Final = 1
_COMES_S: Final = 1.0
_ABLE: Final = Support(True, VIA)


def support(hierarchies: Hierarchies) -> Mapping[Way, Support]:
    """Of what leaves by a link and of what comes in; `needs` names the first thing that is missing."""
    if hierarchies.unified is None:
        return _neither("a cgroup2 mount, by whose cgroups sockets are told apart (hybrid will do)")
    missing = [name for bit, name in ((_NET_ADMIN, "NET_ADMIN"), (_SYS_ADMIN, "SYS_ADMIN")) if not _may(bit)]
    return _neither(f"the capabilities {' and '.join(missing)}") if missing else _tried()


def _neither(needs: str) -> Mapping[Way, Support]:
    return {"egress": Support(False, VIA, needs=needs), "ingress": Support(False, VIA, needs=needs)}


@cache
def _tried() -> Mapping[Way, Support]:
    answers: list[Mapping[Way, Support]] = []
    thread = threading.Thread(target=lambda: answers.append(_try()), name="probe-net")
    thread.start()
    thread.join()
    return answers[0] if answers else _neither("a network namespace to try it in")


def _try() -> Mapping[Way, Support]:
    """In a thread of its own: the namespace goes with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWNET):
        return _neither(f"a network namespace to try it in ({os.strerror(ctypes.get_errno())})")
    egress = _try_egress(netlink := Netlink())
    return {"egress": egress, "ingress": _try_ingress(netlink) if egress.ok else egress}


def _try_ingress(netlink: Netlink) -> Support:
    try:
        refused = ingress.make(netlink, _LO)
        if not refused:
            queue = socket.if_nametoindex(ingress.queue_of(_LO))
            refused = ingress.attach(netlink, _LO, queue, bpf.Map.create(CLASSES, _ID, NUMBER.size, 1))
        through = not refused and _comes_through(netlink)
    except (OSError, QosError) as e:
        return Support(False, VIA, needs=f"programs that find a packet's socket (Linux 5.7): {e}")
    if refused:
        return Support(False, VIA, needs=f"CONFIG_IFB and CONFIG_NET_SCH_INGRESS: {refused.reason}")
    return (
        _ABLE
        if through
        else Support(False, VIA, needs="a newer kernel: this one's IFB drops what a program sends there")
    )


def _comes_through(netlink: Netlink) -> bool:
    """Whether a packet gets past a link of ours: Linux 6.1 builds all of it, and loses what comes in."""
    netlink.ask([NetlinkRequest(NEW_LINK, LINK.pack(0, 0, _LO, _UP, _UP))])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here, socket.socket(here.family, here.type) as there:
        here.bind(("127.0.0.1", 0))
        here.settimeout(_COMES_S)
        there.sendto(b"j10ce", here.getsockname())
        try:
            return here.recv(16) == b"j10ce"
        except TimeoutError:
            return False


def _try_egress(netlink: Netlink) -> Support:
    try:
        built = LinkTree.build(netlink, _LO, _RATE)
    except (OSError, QosError) as e:
        return Support(False, VIA, needs=f"programs of the kernel (CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF): {e}")
    if isinstance(built, Refused):
        return Support(False, VIA, needs=f"CONFIG_NET_SCH_HTB and CONFIG_NET_CLS_BPF: {built.reason}")
    return _ABLE


def _may(bit: int) -> bool:
    rows = (line.split() for line in (read_whole("/proc/self/status") or b"").splitlines())
    return next((int(row[1], 16) >> bit & 1 == 1 for row in rows if row and row[0] == b"CapEff:"), False)
