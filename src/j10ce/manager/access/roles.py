"""What each role may do. One table: the front ends ask it, the tests walk it, the docs show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.errors import Denied
from j10ce.manager.identity import NOBODY, READS, WRITES, Caller, Role, Verb, current
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Hold, NodeQoS, Object
from j10ce.model.knob import CGROUP_KINDS, kind_of

# What is asked for like an object and is none.
DISCOVERY: Final = "Discovery"
METRICS: Final = "Metrics"
DOCUMENT: Final = "NodeDocument"
ENROLMENT: Final = "NodeCredential"
PLACEMENT: Final = "Placement"
KINDS_ASKED: Final = (*KINDS, DOCUMENT, PLACEMENT, ENROLMENT, METRICS, DISCOVERY)
SECRET: Final = ("Credential", ENROLMENT)
DECLARED: Final = ("QoSProfile", "MinimalReservationPolicy", "Hold")  # a NodeStrategy is of whole machines: an admin's
PARTS: Final = ("spec", "status")


class Rule(NamedTuple):
    kinds: tuple[str, ...]
    verbs: tuple[Verb, ...]
    parts: tuple[str, ...] = PARTS
    own: bool = False  # of the caller's own node only


READ: Final = Rule(tuple(kind for kind in KINDS_ASKED if kind not in SECRET), READS)
RULES: Final[Mapping[Role, tuple[Rule, ...]]] = {
    Role.VIEWER: (READ,),
    Role.EDITOR: (
        READ,
        Rule(DECLARED, WRITES, ("spec",)),
        Rule(("NodeQoS",), ("update", "patch"), ("spec",)),
        Rule((PLACEMENT,), ("create",)),
    ),
    Role.NODE: (
        Rule((DISCOVERY,), ("get",)),
        Rule((DOCUMENT,), ("get", "watch"), own=True),
        Rule(("NodeQoS",), ("get",), own=True),
        Rule(("NodeQoS",), ("create",), ("spec",), own=True),
        Rule(("NodeQoS",), ("update", "patch"), ("status",), own=True),
        Rule(("Hold",), ("create", "delete"), ("spec",), own=True),
        Rule((ENROLMENT,), ("get", "create"), own=True),
    ),
    Role.BOOTSTRAP: (Rule((ENROLMENT,), ("create",)),),
    Role.ADMIN: (Rule(KINDS_ASKED, (*READS, *WRITES)),),
}


def _rights(rules: tuple[Rule, ...]) -> Iterator[tuple[tuple[str, str, str], bool]]:
    for rule in rules:
        yield from (((k, v, p), rule.own) for k in rule.kinds for v in rule.verbs for p in rule.parts)


RIGHTS: Final = {role: dict(_rights(rules)) for role, rules in RULES.items()}


def authorise(caller: Caller, verb: Verb, kind: str, namespace: str, name: str, part: str = "spec") -> None:
    """Refuse what the caller's role does not allow; raises Denied.

    A create that names its object in the body comes with an empty name, and `admit` sees the object itself.
    """
    own = RIGHTS[caller.role].get((kind, verb, part))
    if own is None or caller is NOBODY:
        raise Denied(f"{caller} may not {verb} {_spelled(kind, part)}; {_who_may(verb, kind, part)}")
    if own and kind != "Hold" and name not in ("", caller.node):
        raise Denied(f"{caller} may not {verb} {_spelled(kind, part)} {name}: it is another node's")


def enter(verb: Verb, kind: str, namespace: str = "", name: str = "", part: str = "spec") -> None:
    """What the request being served is about; raises Denied when its caller may not."""
    act = current()
    act.verb, act.kind, act.namespace, act.name, act.part = verb, kind, namespace, name, part
    authorise(act.caller, verb, kind, namespace, name, part)


def admit(old: Object | None, new: Object | None, *, dry: bool = False) -> None:
    """The change that the request being served is about to make; raises Denied, or Refusal when it can't be audited.

    `old` is None for a create, `new` for a delete. To be called where every write passes, right before it.
    """
    act = current()
    if not act.verb:
        raise Denied("a write without a right: the request never said what it is about")
    act.before, act.after, act.dry = old, new, act.dry or dry
    obj = new or old
    if obj is not None and old is None:
        act.name, act.namespace = obj.metadata.name, obj.metadata.namespace
        # An apply is a patch that may create.
        authorise(act.caller, "create", act.kind, act.namespace, act.name, act.part)
    if new is not None and act.part == "spec":
        _keep_owners(act.caller, old, new)
        _keep_machines(act.caller, new)
    if act.caller.role is Role.NODE:
        _own(act.caller, old, new)
    act.announce()


def _keep_owners(caller: Caller, old: Object | None, new: Object) -> None:
    """An object ends with its owners: whoever names one that is gone has it deleted, and in the manager's name."""
    before = old.metadata.owner_references if old is not None else ()
    if new.metadata.owner_references == before or (new.kind, "delete", "spec") in RIGHTS[caller.role]:
        return
    reason = f"it would end with them, and {_who_may('delete', new.kind, 'spec')} delete it"
    raise Denied(f"{caller} may not change metadata.ownerReferences of {new.kind} {new.metadata.name}: {reason}")


def _keep_machines(caller: Caller, new: Object) -> None:
    """A value that is held for a machine itself does what a NodeStrategy does; a node has its own machine."""
    if not isinstance(new, Hold) or new.spec.value is UNSET or kind_of(new.spec.target) in CGROUP_KINDS:
        return
    if caller.role is not Role.NODE and ("NodeStrategy", "create", "spec") not in RIGHTS[caller.role]:
        reason = f"as with NodeStrategies, {_who_may('create', 'NodeStrategy', 'spec')}"
        raise Denied(f"{caller} may not hold a value of {new.spec.target}, which is of whole machines; {reason}")


def _own(caller: Caller, old: Object | None, new: Object | None) -> None:
    for obj in (old, new):
        if isinstance(obj, Hold) and obj.spec.node != caller.node:
            raise Denied(f"{caller} may write only holds with spec.node {caller.node}, not {obj.spec.node!r}")
    if old is None and isinstance(new, NodeQoS) and not _bare(new):
        # Labels and spec steer placement and policies: they are the operator's.
        raise Denied(f"{caller} may create its NodeQoS with a name and nothing else")


def _bare(node: NodeQoS) -> bool:
    meta = node.metadata
    return not (meta.labels or meta.annotations or meta.owner_references) and node.spec == type(node.spec)()


def _who_may(verb: str, kind: str, part: str) -> str:
    roles = [role.value for role, rights in RIGHTS.items() if (kind, verb, part) in rights]
    return f"{' or '.join(roles)} may" if roles else "nobody may"


def _spelled(kind: str, part: str) -> str:
    return f"{kind} status" if part == "status" else kind
