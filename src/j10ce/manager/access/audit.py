"""The audit log: every write and every refusal as lines of JSON: who, from where, what, and before and after.

A write has two: its intent before it is done, its outcome after. Both carry one `id`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from j10ce.errors import cut
from j10ce.http.status import CUT_OFF, Refusal
from j10ce.manager.access.tokens import redact
from j10ce.manager.identity import READS, SYSTEM, Act, Role
from j10ce.model.kinds import Object
from j10ce.model.schema import plain

log = structlog.get_logger()
REFUSED: Final = (401, 403)
MOST_BYTES: Final = 64 << 10  # of one line; a longer one has its texts shortened, then leaves before and after out
MOST_SHOWN: Final = 200  # characters of one text in a shortened line
MOST_NAME: Final = 253  # characters; no object has a longer one
MOST_WAITING: Final = 1 << 20  # bytes of lines that wait for the log to work again
# A pipe that nobody reads must not stop us.
FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
SHOWN_META: Final = ("labels", "annotations", "ownerReferences")


class Audit:
    """What cannot be recorded is not done, except for what `goes_on`.

    Lines of what is done or under way that the log does not take wait in `_waiting`, stand in our own log, and come
    first when it works again. Those of refusals, and what waits beyond the bound, are counted in `lost`.
    """

    def __init__(self, path: Path | None, wall: Callable[[], float]) -> None:
        self._path, self._wall = path, wall
        self._fd, self._file = -1, (0, 0)  # the second is the file's device and number
        self._torn = self._failing = False
        self._waiting: deque[bytes] = deque()
        self._run, self._number = secrets.token_hex(4), count(1)
        self.lost = 0

    @property
    def kept(self) -> bool:
        """Whether there is a log at all."""
        return self._path is not None

    def intend(self, act: Act) -> None:
        """A write is about to be done; raises Refusal when nobody would ever hear of it."""
        if self._path is None or not worth_telling(act, 0):
            return
        act.id = act.id or f"{self._run}-{next(self._number)}"
        line = _spelled(head(act, self._wall()) | {"stage": "intent", "id": act.id}) + b"\n"
        if not self._write(self._path, line):
            if not goes_on(act):
                act.id = ""  # a flood of refused writes must not push out what was done
                message = "the audit log cannot be written, so nothing was changed; see the manager's own log"
                raise Refusal(503, message)
            self._wait(line)

    def record(self, act: Act, code: int, message: str = "", **more: str) -> None:
        """What became of a request, as an HTTP code; reads that were allowed and reports of nodes are left out.

        Never raises: by now the deed is done.
        """
        if self._path is None or not worth_telling(act, code):
            return
        line = self._line(act, code, message, **more) + b"\n"
        if not self._write(self._path, line):
            if act.id:
                self._wait(line)
            else:
                self.lost += 1

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _line(self, act: Act, code: int, message: str, **more: str) -> bytes:
        wall, length = self._wall(), 0
        for shown in (_whole, _shortened, _nothing):
            try:
                error = {"error": message[:1000]} if message else {}
                data = _spelled(outcome(act, code, wall, shown) | error | _asked(more) | _cut(length))
            except (RecursionError, ValueError, TypeError) as e:  # whatever an object holds, its line is written
                log.error("audit.unshown", kind=act.kind, name=act.name, error=type(e).__name__)
                length = length or MOST_BYTES
                continue
            if len(data) <= MOST_BYTES:
                return data
            length = length or len(data)
        return _spelled(head(act, wall) | {"code": code} | _cut(length))

    def _wait(self, line: bytes) -> None:
        log.error("audit.waits", line=line.decode().rstrip())
        self._waiting.append(line)
        while sum(map(len, self._waiting)) > MOST_WAITING:
            self._waiting.popleft()
            self.lost += 1

    def _write(self, path: Path, line: bytes) -> bool:
        """Whether the line, and whatever waited before it, is in the log."""
        try:
            self._open(path)
            for waiting in self._first(line):
                self._append(waiting)
        except OSError as e:
            if not self._failing:
                log.error("audit.fail", file=str(path), error=e.strerror)
            self._failing = True
            return False
        if self._failing:
            log.info("audit.recover", file=str(path), lost=self.lost)
        self._failing = False
        return True

    def _first(self, line: bytes) -> Iterator[bytes]:
        while self._waiting:
            yield self._waiting[0]
            self._waiting.popleft()
        yield line

    def _append(self, line: bytes) -> None:
        # What a full disk cut short must not swallow the line that follows it.
        data = b"\n" + line if self._torn else line
        written = os.write(self._fd, data)
        self._torn = written < len(data) and (written > 0 or self._torn)
        if written < len(data):
            raise OSError(0, f"{written} of {len(data)} bytes were written")

    def _open(self, path: Path) -> None:
        """The file under its name: one that was moved away is left to whoever moved it."""
        if self._fd >= 0:
            try:
                named = os.stat(path)
            except FileNotFoundError:
                named = None
            if named is not None and (named.st_dev, named.st_ino) == self._file:
                return
            self.close()
        self._fd = os.open(path, FLAGS, 0o600)
        held = os.fstat(self._fd)
        self._file = held.st_dev, held.st_ino
        self._torn = False


def goes_on(act: Act) -> bool:
    """What keeps the system whole must not wait for a disk: an administrator's deletes, and the leader's own writes."""
    return act.caller is SYSTEM or (act.verb == "delete" and act.caller.role is Role.ADMIN)


def worth_telling(act: Act, code: int) -> bool:
    if code in REFUSED:
        return True
    if not act.verb or act.verb in READS:
        return False
    # Ten thousand nodes report a thousand times a second; what they say is in their objects.
    return not (act.caller.role is Role.NODE and act.part == "status")


def head(act: Act, wall: float) -> dict[str, Any]:
    """Who wants what."""
    who, role, node = act.caller
    fields = {
        "when": datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds"),
        "who": who,
        "role": role.value if who else "",
        "node": node,
        "source": act.source,
        "verb": act.verb,
        "kind": act.kind,
        "namespace": act.namespace[:MOST_NAME],
        "name": act.name[:MOST_NAME],
        "part": act.part if act.part != "spec" else "",
        "dryRun": act.dry,
    }
    return {name: value for name, value in fields.items() if value}


def outcome(act: Act, code: int, wall: float, shown: Callable[[Any], Any]) -> dict[str, Any]:
    """What became of it. Where it may have been done all the same, the line says what it would change."""
    line = head(act, wall) | ({"stage": "outcome", "id": act.id} if act.id else {}) | {"code": code}
    refused = 400 <= code < CUT_OFF
    if shown is _nothing or refused or (act.before is None and act.after is None):
        return line
    before, after = difference(_shown(act.before, act.part), _shown(act.after, act.part))
    return line | {"before": shown(before), "after": shown(after)}


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
    with suppress(ValueError):  # half of a character that has two
        quick = msgspec.json.encode(line).decode()
        if quick.isascii() and quick.isprintable():
            return redact(quick).encode()
    return redact(json.dumps(line, separators=(",", ":"))).encode()


def _asked(fields: dict[str, str]) -> dict[str, str]:
    """A stranger may send a path that is as long as all headers together, and the disk is ours."""
    return {name: cut(value) for name, value in fields.items() if value}


def _cut(length: int) -> dict[str, int]:
    return {"cut": length} if length else {}


def _whole(value: Any) -> Any:
    return value


def _nothing(_: Any) -> None:
    return None


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > MOST_SHOWN:
        return f"{value[:MOST_SHOWN]}… ({len(value)} characters)"
    return value
