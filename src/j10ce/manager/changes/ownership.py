"""Who decided what: ownership of every leaf of an object, through plain writes and server-side apply. Pure.

A plain write takes what it changes. An apply states all that its manager decides: it may not change what others own
unless it is forced, and what it no longer mentions goes, unless someone else owns it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from j10ce.errors import FieldConflict
from j10ce.manager.changes.fields import Path, Tree, common, leaves, owns, paths, sound, spelled, tree, whole
from j10ce.manager.changes.merge import merge, pruned
from j10ce.manager.changes.topology import Shape, shape_of
from j10ce.model.kinds import API_VERSION, ManagedFields, Object
from j10ce.model.schema import convert, plain
from j10ce.model.stored import Key, Part

MOST_MANAGERS: Final = 10  # that update; what older ones decided is summed up
ANCIENT: Final = "ancient-changes"
BEFORE: Final = "before-first-apply"  # Kubernetes' names, both
DECIDED_META: Final = ("labels", "annotations", "ownerReferences")
# Whoever moves from `kubectl apply` to `kubectl apply --server-side` stays the one who decided.
INHERITED: Final = {"kubectl": "kubectl-client-side-apply"}
CLEARED: Final = (ManagedFields(),)  # what a client sends to forget all owners


class FieldWriter(NamedTuple):
    """Who writes, which half of the object, and when."""

    manager: str
    part: Part
    wall: float

    def entry(self, operation: Literal["Apply", "Update"]) -> ManagedFields:
        subresource = self.part if self.part == "status" else UNSET
        return ManagedFields(manager=self.manager, operation=operation, subresource=subresource)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(int(self.wall), UTC)


@cache
def decided(struct: type[Struct], part: Part) -> Shape:
    """The shape of what clients decide in one half of an object."""
    whole = shape_of(struct).fields
    if part == "status":
        return Shape(fields={"status": whole["status"]})
    meta = Shape(fields={name: whole["metadata"].fields[name] for name in DECIDED_META})
    rest = {name: shape for name, shape in whole.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return Shape(fields={"metadata": meta, **rest})


def updated(old: Object | None, new: Object, writer: FieldWriter) -> Object:
    """`new` with the owners that a plain write leaves."""
    given = new.metadata.managed_fields if writer.part == "spec" else ()
    given = given if all(sound(entry.fields_v1) for entry in given) else ()  # nonsense is left out, as by Kubernetes
    held = given or (old.metadata.managed_fields if old else ())
    if held == CLEARED:
        return _owned(new, ())
    shape = decided(type(new), writer.part)
    if old is None and not held:
        return _owned(new, _with(writer.entry("Update"), whole(new, shape), writer.time))
    mine, others = _split(held, writer.entry("Update"))
    changed, gone = _differences(old, new, shape)
    kept = _taken(others, changed | gone)
    if not gone and kept == others and all(owns(mine.fields_v1, path) for path in changed):
        return _owned(new, held)
    entry = _with(mine, tree(frozenset(paths(mine.fields_v1)) - gone | changed), writer.time)
    return _owned(new, _few((*kept, *entry)))


def applied(old: Object | None, config: dict[str, Any], key: Key, kind: type[Struct], writer: FieldWriter) -> Object:
    """The object after an apply that takes whatever it says; `refuse` finds out whether it may."""
    shape = decided(kind, writer.part)
    said = frozenset(path for path, _ in leaves(config, shape))
    mine, others = _split(_held(old, shape) if old else (), writer.entry("Apply"))
    base = plain(old) if old else _blank(key)
    dropped = _dropped(mine, others, said)
    kept = pruned(base, tree(dropped), shape) if dropped else base
    new: Object = convert(merge(kept, config, shape), kind)  # type: ignore[assignment]
    changed, gone = _differences(old, new, shape)
    rest = _taken(others, changed | gone)
    return _owned(new, (*rest, *_with(mine, tree(said), writer.time)))


def refuse(old: Object, new: Object, writer: FieldWriter) -> None:
    """Raises FieldConflict when an apply changed what others own: their names, and every field."""
    shape = decided(type(new), writer.part)
    changed, gone = _differences(old, new, shape)
    _, others = _split(_held(old, shape), writer.entry("Apply"))
    others = [entry for entry in others if entry.manager != INHERITED.get(writer.manager)]
    touched = tree(changed | gone)  # what nobody wants any more has no other owner; a value set to its default may
    owners = [(entry.manager, path) for entry in others for path in sorted(common(entry.fields_v1, touched))]
    if owners:
        raise FieldConflict([(manager, spelled(path)) for manager, path in owners])


def _held(old: Object, shape: Shape) -> tuple[ManagedFields, ...]:
    """Who owns what is there. Where nobody is known, somebody decided it all the same: who applies has to ask."""
    if old.metadata.managed_fields:
        return old.metadata.managed_fields
    return _with(ManagedFields(manager=BEFORE, operation="Update"), whole(old, shape), UNSET)


def _differences(old: Object | None, new: Object, shape: Shape) -> tuple[frozenset[Path], frozenset[Path]]:
    """(added or changed, gone); an empty section that is filled is not gone"""
    before = dict(leaves(old, shape, new)) if old else {}
    after = dict(leaves(new, shape, old))
    changed = frozenset(path for path, value in after.items() if path not in before or before[path] != value)
    gone = before.keys() - after.keys()
    inside = _inside(after) if gone else ()
    return changed, frozenset(path for path in gone if path not in inside)


def _dropped(mine: ManagedFields, others: Iterable[ManagedFields], said: frozenset[Path]) -> frozenset[Path]:
    """What was said before, is said no more, and has nobody else who says it or something inside it."""
    wanted = said.union(*(paths(entry.fields_v1) for entry in others))
    inside = _inside(wanted)
    return frozenset(path for path in paths(mine.fields_v1) if path not in inside)


def _inside(wanted: Iterable[Path]) -> set[Path]:
    """These paths, and all that lead to them."""
    return {path[:n] for path in wanted for n in range(1, len(path) + 1)}


def _split(held: Collection[ManagedFields], wanted: ManagedFields) -> tuple[ManagedFields, list[ManagedFields]]:
    """One manager's own entry, and the rest."""
    own = [entry for entry in held if _same(entry, wanted)]
    return own[0] if own else wanted, [entry for entry in held if not _same(entry, wanted)]


def _same(a: ManagedFields, b: ManagedFields) -> bool:
    return (a.manager, a.operation, a.subresource) == (b.manager, b.operation, b.subresource)


def _taken(entries: Iterable[ManagedFields], lost: frozenset[Path]) -> list[ManagedFields]:
    """The entries without these paths; those that own nothing any more are gone."""
    kept: list[ManagedFields] = []
    taken = tree(lost)
    for entry in entries:
        if any(common(entry.fields_v1, taken)):
            kept += _with(entry, tree(frozenset(paths(entry.fields_v1)) - lost), entry.time)
        else:
            kept.append(entry)
    return kept


def _with(entry: ManagedFields, fields: Tree, time: datetime | UnsetType) -> tuple[ManagedFields, ...]:
    """The entry with exactly these fields; its time moves only with them. Nothing to hold: no entry."""
    if not fields:
        return ()
    return (entry,) if fields == entry.fields_v1 else (replace(entry, fields_v1=fields, time=time),)


def _few(entries: tuple[ManagedFields, ...]) -> tuple[ManagedFields, ...]:
    """Whoever updated first is forgotten first, by name; what they own stays owned."""
    updates = [entry for entry in entries if entry.operation == "Update" and entry.subresource is UNSET]
    if len(updates) <= MOST_MANAGERS:
        return entries
    old = sorted(updates[:-1], key=lambda entry: entry.manager != ANCIENT)[: len(updates) - MOST_MANAGERS + 1]
    held = frozenset(path for entry in old for path in paths(entry.fields_v1))
    summed = replace(old[-1], manager=ANCIENT, fields_v1=tree(held))
    forgotten = set(map(id, old))  # comparing them would take as long as all of them do, for each
    return (summed, *(entry for entry in entries if id(entry) not in forgotten))


def _owned(obj: Object, entries: tuple[ManagedFields, ...]) -> Object:
    if entries == obj.metadata.managed_fields:
        return obj
    return replace(obj, metadata=replace(obj.metadata, managed_fields=entries))


def _blank(key: Key) -> dict[str, Any]:
    metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    return {"apiVersion": API_VERSION, "kind": key.kind, "metadata": metadata}
