"""How kube-scheduler writes to its extenders (kube-scheduler/extender/v1), and what it reads.

Its types have no JSON names: keys are Go's field names, absent maps and lists are null, and case does not matter when
reading. Pods inside are ordinary API objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from j10ce.errors import Finding, Invalid
from j10ce.model.kube.native import decode_native, read_amount, without_nulls
from j10ce.model.kube.pod import Pod

CAPABLE: Final = "set nodeCacheCapable: true in the scheduler's configuration"


class Question(NamedTuple):
    """Of filter and of prioritize, as it was written."""

    pod: bytes
    names: bytes


class FilterCall(NamedTuple):
    pod: Pod
    nodes: Sequence[str]


class PreemptCall(NamedTuple):
    pod: Pod
    victims: Mapping[str, tuple[Sequence[str], int]]  # by node: uids, and disruption budgets that it would break


class FilterAnswer(Struct, frozen=True, kw_only=True, rename="pascal"):
    nodes: None = None
    node_names: Raw = Raw(b"null")
    failed_nodes: Mapping[str, str] | None = None
    failed_and_unresolvable_nodes: Mapping[str, str] | None = None
    error: str = ""


class HostPriority(Struct, frozen=True, rename="pascal"):
    host: str
    score: int  # 0 to 10


class MetaPod(Struct, frozen=True):
    uid: str = field(name="UID")


class MetaVictims(Struct, frozen=True):
    pods: Sequence[MetaPod] = field(name="Pods")
    violations: int = field(name="NumPDBViolations")


class PreemptAnswer(Struct, frozen=True):
    nodes: Mapping[str, MetaVictims] = field(name="NodeNameToMetaVictims")


def question(text: bytes) -> Question:
    """Raises Invalid."""
    given = _fields(text)
    asked = Question(_text(given, "pod"), _text(given, "nodenames"))
    if asked.names == b"null" and _text(given, "nodes") != b"null":
        raise Invalid([Finding("NodeNames", None, "nodes came whole", CAPABLE)], "extender request")
    return asked


def read_filter(asked: Question) -> FilterCall:
    """Raises Invalid."""
    return FilterCall(_pod(asked.pod), _decoded(asked.names, list[str] | None, "nodenames") or ())


def read_preempt(text: bytes) -> PreemptCall:
    """Raises Invalid."""
    given = _fields(text)
    victims = _one(given, "nodenametometavictims", dict[str, Raw] | None)
    if victims is None and _one(given, "nodenametovictims", dict[str, Any] | None):
        raise Invalid([Finding("NodeNameToMetaVictims", None, "victims came whole", CAPABLE)], "extender request")
    return PreemptCall(_pod(_text(given, "pod")), {node: _victims(bytes(raw)) for node, raw in (victims or {}).items()})


def _fields(text: bytes) -> dict[str, Raw]:
    """By lower-case name."""
    given = _decoded(text, dict[str, Raw], "")
    return {key.lower(): value for key, value in given.items()}


def _one(given: Mapping[str, Raw], name: str, kind: Any) -> Any:
    return _decoded(_text(given, name), kind, name)


def _text(given: Mapping[str, Raw], name: str) -> bytes:
    return bytes(given.get(name, b"null"))


def _pod(text: bytes) -> Pod:
    try:
        return decode_native(text, Pod)
    except msgspec.ValidationError:
        pass  # perhaps for a null
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(text)), Pod, dec_hook=read_amount)
    except (msgspec.MsgspecError, RecursionError) as e:
        raise Invalid([Finding("Pod", None, str(e))], "extender request") from None


def _victims(text: bytes) -> tuple[Sequence[str], int]:
    given = _fields(text)
    pods = [
        {key.lower(): uid for key, uid in pod.items()} for pod in _one(given, "pods", list[dict[str, str]] | None) or ()
    ]
    return [pod.get("uid", "") for pod in pods], _one(given, "numpdbviolations", int | None) or 0


def _decoded(text: bytes, kind: Any, path: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as e:
        raise Invalid([Finding(path, None, str(e))], "extender request") from None
