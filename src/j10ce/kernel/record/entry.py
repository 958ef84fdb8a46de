"""What the journal says: one struct per kind of line, and how a line is protected."""

from __future__ import annotations

import math
import zlib
from typing import Final

import msgspec
from msgspec import Struct

from j10ce.model.knob import Deed, Setting, TargetId, Value
from j10ce.model.workload import Handle

FORMAT: Final = 1
CONTROLLERS: Final = "cgroup.subtree_control"

Spelled = float | list[int] | str | None  # JSON has no infinity: None stands for it


class Header(Struct, frozen=True, omit_defaults=True, tag="journal"):
    format: int
    boot: str


class Original(Struct, frozen=True, omit_defaults=True, tag="original"):
    """What a setting held before our first write, to the letter."""

    target: TargetId
    knob: str
    instance: str
    at: Handle
    identity: int
    via: str  # the back end that saved `text` and can restore it
    text: str
    value: Spelled

    @property
    def setting(self) -> Setting:
        return Setting(self.target, self.knob, self.instance)


class Wrote(Struct, frozen=True, omit_defaults=True, tag="wrote"):
    """What we are about to write, or what the kernel made of it."""

    target: TargetId
    knob: str
    instance: str
    value: Spelled
    owner: str

    @property
    def setting(self) -> Setting:
        return Setting(self.target, self.knob, self.instance)


class Made(Struct, frozen=True, omit_defaults=True, tag="made"):
    target: TargetId
    at: Handle


class Enabled(Struct, frozen=True, omit_defaults=True, tag="enabled"):
    """Controllers that the children of a target had not before."""

    target: TargetId
    at: Handle
    identity: int
    controllers: list[str]


class Joined(Struct, frozen=True, omit_defaults=True, tag="joined"):
    target: TargetId
    pid: int


class Forgot(Struct, frozen=True, omit_defaults=True, tag="forgot"):
    """Given back or gone: a setting, the controllers of a target (`CONTROLLERS`), or with an empty knob all of it."""

    target: TargetId
    knob: str = ""
    instance: str = ""


class Did(Struct, frozen=True, omit_defaults=True, tag="did"):
    """A deed that we are about to do. It cannot be undone: the record keeps it from being done twice."""

    deed: Deed
    target: TargetId
    wall: float
    owner: str
    amount: float = 0.0


Entry = Original | Wrote | Made | Enabled | Joined | Forgot | Did

_LINE: Final[msgspec.json.Decoder[Header | Entry]] = msgspec.json.Decoder(Header | Entry)
_ENCODER: Final = msgspec.json.Encoder()


def to_line(entry: Header | Entry) -> bytes:
    text = _ENCODER.encode(entry)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def from_line(line: bytes) -> Header | Entry | None:
    """None when the line is not what we wrote."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        return _LINE.decode(text)
    except msgspec.MsgspecError:
        return None


def wrote(setting: Setting, value: Value, owner: str) -> Wrote:
    return Wrote(*setting, to_spelled(value), owner)


def to_spelled(value: Value) -> Spelled:
    if isinstance(value, frozenset):
        return sorted(value)
    return None if value == math.inf else value


def from_spelled(spelled: Spelled) -> Value:
    if isinstance(spelled, list):
        return frozenset(spelled)
    return math.inf if spelled is None else spelled
