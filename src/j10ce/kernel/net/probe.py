"""Whether traffic can be divided here: tried in a network namespace that nobody else is in, and that ends at once."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Final

from j10ce.errors import QosError
from j10ce.host.files import read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.host.net.netlink import Netlink
from j10ce.kernel.net.tree import LinkTree
from j10ce.model.knob import Support
from j10ce.model.plan import Refused

VIA: Final = "htb"
_NEWNET: Final = 0x4000_0000
_LO: Final = 1  # the only link of a new namespace
_NET_ADMIN, _SYS_ADMIN = 12, 21
_RATE: Final = 125_000


def support(hierarchies: Hierarchies) -> Support:
    """Of all that leaves by a link; `needs` names the first thing that is missing."""
    if hierarchies.unified is None:
        return Support(False, VIA, needs="a cgroup2 mount, by whose cgroups sockets are told apart (hybrid will do)")
    missing = [name for bit, name in ((_NET_ADMIN, "NET_ADMIN"), (_SYS_ADMIN, "SYS_ADMIN")) if not _may(bit)]
    if missing:
        return Support(False, VIA, needs=f"the capabilities {' and '.join(missing)}")
    return _tried()


@cache
def _tried() -> Support:
    answers: list[Support] = []
    thread = threading.Thread(target=lambda: answers.append(_try()), name="probe-net")
    thread.start()
    thread.join()
    return answers[0] if answers else Support(False, VIA, needs="a network namespace to try it in")


def _try() -> Support:
    """In a thread of its own: the namespace goes with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWNET):
        return Support(False, VIA, needs=f"a network namespace to try it in ({os.strerror(ctypes.get_errno())})")
    try:
        built = LinkTree.build(Netlink(), _LO, _RATE)
    except (OSError, QosError) as e:
        return Support(False, VIA, needs=f"programs of the kernel (CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF): {e}")
    if isinstance(built, Refused):
        return Support(False, VIA, needs=f"CONFIG_NET_SCH_HTB and CONFIG_NET_CLS_BPF: {built.reason}")
    return Support(True, VIA)


def _may(bit: int) -> bool:
    rows = (line.split() for line in (read_whole("/proc/self/status") or b"").splitlines())
    return next((int(row[1], 16) >> bit & 1 == 1 for row in rows if row and row[0] == b"CapEff:"), False)
