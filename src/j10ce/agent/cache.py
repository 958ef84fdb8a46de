"""What the agent remembers: the last good node document, its local workloads, holds made on its socket.

What dies with the kernel lies in the run directory, the rest in the state directory. Files are JSON with a version,
0600, replaced atomically. A file that cannot be read is moved aside, and `status` warns of it; the agent goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog
from msgspec import Struct, field

from j10ce.errors import Invalid
from j10ce.model import schema
from j10ce.model.kinds import Hold, Strict, Tier, Workload
from j10ce.model.kube.native import Native, read_amount
from j10ce.model.kube.pod import Pod
from j10ce.model.resource import RESOURCES, Resources
from j10ce.model.workload import Handle
from j10ce.policy.document.document import FORMAT as DOCUMENT_FORMAT
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.ledger import Line
from j10ce.policy.predict import Checkpoint

log = structlog.get_logger()
FORMAT: Final = 1
S = TypeVar("S", bound=Struct)
T = TypeVar("T")


class KeptWorkload(Strict, frozen=True, kw_only=True):
    """A local workload as it must be found again after a restart.

    `boot_id` and `inode` prove that the cgroup is the same one, not a path that someone used again.
    """

    workload: Workload
    handle: Handle
    inode: int
    boot_id: str
    uid: int
    since: float
    format: int = FORMAT


class LocalHolds(Strict, frozen=True, kw_only=True):
    format: int = FORMAT
    items: tuple[Hold, ...] = ()
    released: tuple[str, ...] = ()  # names of holds that ended here and that the control plane may still list
    makers: dict[str, int] = field(default_factory=dict)  # name of a hold to the user that made it


class Pods(Native, frozen=True, kw_only=True):
    items: tuple[Pod, ...] = ()


class KeptPromise(Strict, frozen=True, kw_only=True):
    """A line of the node's ledger; `amount` in the order of Resources."""

    holder: str
    amount: tuple[int, ...]
    tier: Tier
    charged: str = ""
    units: int = 0


class Promises(Strict, frozen=True, kw_only=True):
    format: int = FORMAT
    items: tuple[KeptPromise, ...] = ()


class Orders(Strict, frozen=True, kw_only=True):
    """What an operator ordered, to be obeyed after a restart too."""

    format: int = FORMAT
    disarmed: bool = False


class Histories(Strict, frozen=True, kw_only=True):
    """What was learned of this machine's peaks, by series."""

    format: int = FORMAT
    histograms: dict[str, Checkpoint] = field(default_factory=dict)


class Cache:
    def __init__(self, run_dir: Path, state_dir: Path) -> None:
        self._document = state_dir / "document.json"
        self._holds = state_dir / "holds.json"
        self._histories = state_dir / "histories.json"
        self._workloads = run_dir / "workloads"
        self._orders = run_dir / "orders.json"
        self._pods = run_dir / "pods.json"
        self._promises = run_dir / "promises.json"
        self.warnings: list[str] = []
        self._turn = asyncio.Lock()

    async def aside(self, keep: Callable[[S], T], value: S) -> T:
        """For what goes to a disk, on a thread: one that hangs holds up whoever waits for this, and nobody else."""
        async with self._turn:
            return await asyncio.to_thread(keep, value)

    def document(self) -> NodeDocument | None:
        return self._load(self._document, NodeDocument, DOCUMENT_FORMAT)

    def keep_document(self, document: NodeDocument) -> None:
        self._save(self._document, document)

    def workloads(self) -> list[KeptWorkload]:
        """One file each, so that an arrival costs the same however many there are."""
        loaded = (self._load(path, KeptWorkload) for path in sorted(self._workloads.glob("*.json")))
        return [placed for placed in loaded if placed is not None]

    def keep_workload(self, placed: KeptWorkload) -> None:
        self._save(self._file(placed.workload.metadata.namespace, placed.workload.metadata.name), placed)

    def drop_workload(self, namespace: str, name: str) -> None:
        self._file(namespace, name).unlink(missing_ok=True)

    def _file(self, namespace: str, name: str) -> Path:
        return self._workloads / f"{namespace}_{name}.json"

    def holds(self) -> LocalHolds:
        return self._load(self._holds, LocalHolds) or LocalHolds()

    def keep_holds(self, holds: LocalHolds) -> str:
        """Why they are not on disk; empty where they are."""
        return self._save(self._holds, holds)

    def orders(self) -> Orders:
        return self._load(self._orders, Orders) or Orders()

    def keep_orders(self, orders: Orders) -> None:
        self._save(self._orders, orders)

    def pods(self) -> tuple[Pod, ...]:
        """As the API server listed them last, in this boot; one that cannot be read again is simply not known."""
        try:
            return msgspec.json.decode(self._pods.read_bytes(), type=Pods, dec_hook=read_amount).items
        except (OSError, msgspec.MsgspecError):
            return ()

    def keep_pods(self, pods: Iterable[Pod]) -> None:
        self._save(self._pods, Pods(items=tuple(pods)))

    def promises(self) -> tuple[Line, ...]:
        """Of the agent before this one, in this boot: a restart takes none of them back."""
        kept = self._load(self._promises, Promises) or Promises()
        return tuple(
            Line(p.holder, Resources._make(p.amount), p.tier, p.charged, p.units)
            for p in kept.items
            if len(p.amount) == len(RESOURCES)
        )

    def keep_promises(self, lines: Iterable[Line]) -> None:
        items = (
            KeptPromise(holder=n.holder, amount=tuple(n.amount), tier=n.tier, charged=n.charged, units=n.units)
            for n in lines
        )
        self._save(self._promises, Promises(items=tuple(items)))

    def histories(self) -> Histories:
        return self._load(self._histories, Histories) or Histories()

    def keep_histories(self, histories: Histories) -> None:
        self._save(self._histories, histories)

    def forget_run(self) -> None:
        """After a retirement nothing of this boot is left to remember."""
        for path in (*self._workloads.glob("*.json"), self._orders, self._pods, self._promises):
            path.unlink(missing_ok=True)

    def _load(self, path: Path, into: type[S], present: int = FORMAT) -> S | None:
        """What the file says in its present format or the one before."""
        try:
            raw: Any = msgspec.json.decode(path.read_bytes())
            value = schema.convert_ours(raw, into)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, Invalid) as e:
            self._set_aside(path, str(e))
            return None
        if getattr(value, "format", present) not in (present, present - 1):
            self._set_aside(path, f"written in format {getattr(value, 'format', '?')}, this agent reads {present}")
            return None
        return value

    def _set_aside(self, path: Path, why: str) -> None:
        kept = path.with_suffix(".corrupt")
        try:
            path.replace(kept)
        except OSError as e:
            why = f"{why}; no copy could be kept: {e}"
        self.warnings.append(f"{path} cannot be used ({why}); a copy is {kept}, and the agent goes on without it")
        log.warning("cache.set_aside", file=str(path), copy=str(kept), why=why)

    def _save(self, path: Path, value: Struct) -> str:
        """Readers see the old file or the new one, never a part. A full disk costs the memory, not the protection;
        then the reason is returned."""
        draft = path.with_suffix(".draft")
        try:
            with os.fdopen(_open(draft), "wb") as f:
                f.write(schema.encode(value))
            draft.replace(path)
        except OSError as e:
            log.error("cache.save_failed", file=str(path), error=str(e))
            return f"{path}: {e.strerror or e}"
        return ""


class HistoryKeeper:
    """Writes histories on a thread, one at a time: a disk that hangs does not hold up the event loop."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._saving: asyncio.Future[None] | None = None

    def keep(self, histories: Histories) -> None:
        if self._saving is None or self._saving.done():
            self._saving = asyncio.get_running_loop().run_in_executor(None, self._cache.keep_histories, histories)

    async def finish(self, patience_s: float) -> None:
        if self._saving:
            await asyncio.wait([self._saving], timeout=patience_s)


def _open(draft: Path) -> int:
    """Its folder is made when it is missed: an arrival does not ask each time."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(draft, flags, 0o600)
    except FileNotFoundError:
        draft.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        return os.open(draft, flags, 0o600)
