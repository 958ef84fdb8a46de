"""Which store a URL means, and who leads on it: the one table of schemes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from j10ce.errors import Finding, Invalid
from j10ce.store.elector import Alone, Elector, Shared
from j10ce.store.memory import MemoryStore
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.store import Store

Wall = Callable[[], float]
FORMS: Final = (
    "use sqlite:///path/to/file, etcd://host:2379, etcds://host:2379?ca=/path, kube: inside a pod, "
    "kube:///path/to/kubeconfig, or memory:"
)


def open_store(url: str, wall: Wall, *, create: bool = True) -> Store:
    """Raises Invalid for a URL that means nothing, and what the store raises when it cannot be opened.

    `create`: a file that is not there is made; whoever only reads gets NotFound.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "memory" and not rest:
        return MemoryStore(wall)
    if scheme == "sqlite" and rest.startswith("///"):
        return SqliteStore(Path("/", rest.lstrip("/")), wall, create=create)
    if scheme in ("etcd", "etcds") and rest.startswith("//"):
        from j10ce.store.etcd.address import read_address
        from j10ce.store.etcd.store import EtcdStore  # gRPC is heavy, and of the fleet's extra

        return EtcdStore(read_address(url), wall)
    if scheme == "kube":
        from j10ce.kube.access import read_access
        from j10ce.store.kube.store import KubeStore

        return KubeStore(read_access(url, os.environ, wall=wall), wall)
    raise Invalid([Finding("--store", url, "unknown store", FORMS)], "argument")


def elector_for(store: Store, identity: str) -> Elector:
    """`identity` names this process to people: `host:port`, say."""
    return store.elector(identity) if isinstance(store, Shared) else Alone(identity)
