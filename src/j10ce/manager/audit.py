"""The audit log: every write and every refusal as one line of JSON: who, from where, what, and before and after."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

from j10ce.manager.identity import READS, Act, Role
from j10ce.manager.tokens import redact
from j10ce.model.kinds import Object
from j10ce.model.schema import plain

log = structlog.get_logger()
REFUSED: Final = (401, 403)
MOST_BYTES: Final = 64 << 10  # of one line; a longer one leaves before and after out
# A pipe that nobody reads must not stop us.
FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
SHOWN_META: Final = ("labels", "annotations", "ownerReferences")


class Audit:
    """Writing it never stops the API: a line that does not fit on the disk is counted in `lost` and told once."""

    def __init__(self, path: Path | None, wall: Callable[[], float]) -> None:
        self._path, self._wall = path, wall
        self._fd = -1
        self._torn = self._failing = False
        self.lost = 0

    def record(self, act: Act, code: int, message: str = "", **more: str) -> None:
        """What became of a request, as an HTTP code; reads that were allowed and reports of nodes are left out."""
        if self._path is None or not worth_telling(act, code):
            return
        data = _spelled(told(act, code, self._wall()) | _given(error=message, **more))
        if len(data) > MOST_BYTES:
            short = told(act, code, self._wall(), whole=False) | _given(error=message[:1000])
            data = _spelled(short | {"cut": len(data)})
        self._write(self._path, data + b"\n")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, path: Path, line: bytes) -> None:
        try:
            self._open(path)
            # What a full disk cut short must not swallow the line that follows it.
            data = b"\n" + line if self._torn else line
            written = os.write(self._fd, data)
            self._torn = written < len(data) and (written > 0 or self._torn)
            if written < len(data):
                raise OSError(0, f"{written} of {len(data)} bytes were written")
        except OSError as e:
            self.lost += 1
            if not self._failing:
                log.error("audit.fail", file=str(path), error=e.strerror)
            self._failing = True
        else:
            if self._failing:
                log.info("audit.recover", file=str(path), lost=self.lost)
            self._failing = False

    def _open(self, path: Path) -> None:
        """The file under its name: one that was moved away is left to whoever moved it."""
        if self._fd >= 0:
            held = os.fstat(self._fd)
            try:
                named = path.stat()
            except FileNotFoundError:
                named = None
            if named is not None and (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
                return
            self.close()
        self._fd = os.open(path, FLAGS, 0o600)
        self._torn = False


def worth_telling(act: Act, code: int) -> bool:
    if code in REFUSED:
        return True
    if not act.verb or act.verb in READS:
        return False
    # Ten thousand nodes report a thousand times a second; what they say is in their objects.
    return not (act.caller.role is Role.NODE and act.part == "status")


def told(act: Act, code: int, wall: float, *, whole: bool = True) -> dict[str, Any]:
    line: dict[str, Any] = {"when": datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")}
    line |= _given(who=act.caller.name, role=act.caller.role.value if act.caller.name else "", node=act.caller.node)
    line |= _given(source=act.source, verb=act.verb, kind=act.kind, namespace=act.namespace, name=act.name)
    line |= {"part": act.part} if act.part != "spec" else {}
    line |= {"dryRun": True} if act.dry else {}
    line |= {"code": code}
    if not whole or code >= 400 or (act.before is None and act.after is None):
        return line
    before, after = difference(_shown(act.before, act.part), _shown(act.after, act.part))
    return line | {"before": before, "after": after}


def difference(old: Any, new: Any) -> tuple[Any, Any]:
    """Both without what they share; None where there is nothing."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return (None, None) if old == new else (old, new)
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for key in {**old, **new}:
        was, is_ = difference(old.get(key), new.get(key))
        before |= {} if was is None else {key: was}
        after |= {} if is_ is None else {key: is_}
    return before or None, after or None


def _shown(obj: Object | None, part: str) -> dict[str, Any] | None:
    """The half that the request was about; a status is seldom written by hand, and then it matters."""
    if obj is None:
        return None
    raw = plain(obj)
    meta = {key: raw["metadata"][key] for key in SHOWN_META if raw["metadata"].get(key)}
    body = {key: value for key, value in raw.items() if key not in ("metadata", "apiVersion", "kind", "status")}
    half = {"status": raw.get("status")} if part == "status" else body
    return ({"metadata": meta} if meta else {}) | half


def _spelled(line: dict[str, Any]) -> bytes:
    """In ASCII: no sign that a viewer may take for the end of a line, or a terminal for a command."""
    return redact(json.dumps(line, separators=(",", ":"))).encode()


def _given(**fields: str) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
