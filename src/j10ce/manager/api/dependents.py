"""What becomes of the objects that another one owns when that one is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.errors import Conflict, Finding, Invalid, NotFound
from j10ce.manager.documents.view import MIRRORED
from j10ce.model.bounds import Word, Words
from j10ce.model.kinds import Object, PolicyRevision, Strict
from j10ce.model.schema import parse_once
from j10ce.model.stored import Key, key_of
from j10ce.store.store import Store

log = structlog.get_logger()
ORPHAN: Final = "Orphan"
POLICIES: Final = (ORPHAN, "Background", "Foreground")
KEPT: Final = tuple(kind.__name__ for kind in MIRRORED if kind is not PolicyRevision)  # a history ends with its policy
DISCARD: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
MOST_TRIES: Final = 10


class Preconditions(Strict, frozen=True, kw_only=True):
    uid: Word = ""
    resource_version: Word = ""


class DeleteOptions(Strict, frozen=True, kw_only=True):
    """As clients send it. Deletion is at once, so graces have nothing to say; what is owned is collected after it, in
    the background and in the foreground alike, unless it is orphaned."""

    api_version: Word = "v1"
    kind: Word = "DeleteOptions"
    preconditions: Preconditions | None = None
    dry_run: Words | None = None
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: Word | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None

    @property
    def discards(self) -> bool:
        """Whether it is deleted also where nobody can read it, as Kubernetes spells that."""
        return self.ignore_store_read_error_with_cluster_breaking_potential is True

    @property
    def orphans(self) -> bool:
        """Whether what is owned stays."""
        return self.orphan_dependents is True or self.propagation_policy == ORPHAN


def checked(options: DeleteOptions) -> DeleteOptions:
    """Raises Invalid when they do not say what becomes of what is owned."""
    policy = options.propagation_policy
    if policy is not None and policy not in POLICIES:
        raise Invalid([Finding("propagationPolicy", policy, "unknown", "use " + ", ".join(POLICIES))], options.kind)
    if policy is not None and options.orphan_dependents is not None:
        twice = Finding("propagationPolicy", policy, "beside orphanDependents", "give one of them")
        raise Invalid([twice], options.kind)
    beside = (options.preconditions, options.dry_run, options.grace_period_seconds, options.orphan_dependents, policy)
    if options.discards and any(option is not None for option in beside):
        alone = "of what nobody can read nothing else can be asked; leave out every other option"
        raise Invalid([Finding(DISCARD, None, "not alone", alone)], options.kind)
    return options


def read_options(raw: bytes) -> DeleteOptions:
    """The body of a delete."""
    return checked(parse_once(raw, DeleteOptions))


def asked(params: Mapping[str, str]) -> DeleteOptions:
    """What the query of a delete says; a body counts in its place."""
    orphans = params.get("orphanDependents")
    orphan = None if orphans is None else orphans in ("1", "true")
    return checked(
        DeleteOptions(
            propagation_policy=params.get("propagationPolicy"),
            orphan_dependents=orphan,
            ignore_store_read_error_with_cluster_breaking_potential=params.get(DISCARD) in ("1", "true"),
        )
    )


async def let_go(store: Store, owner: Object) -> None:
    """Nothing ends with `owner` any more, its history aside: the references to it are taken out."""
    for kind in KEPT:
        for obj in (await store.list(kind)).items:
            if any(o.uid == owner.metadata.uid for o in obj.metadata.owner_references):
                await _orphan(store, key_of(obj), owner)


async def _orphan(store: Store, key: Key, owner: Object) -> None:
    for _ in range(MOST_TRIES):
        try:
            dependent = await store.get(*key)
            others = tuple(o for o in dependent.metadata.owner_references if o.uid != owner.metadata.uid)
            free = replace(dependent, metadata=replace(dependent.metadata, owner_references=others))
            await store.put(free, expect=dependent.metadata.resource_version)
        except Conflict:
            continue  # someone writes it
        except NotFound:
            return
        log.info("object.orphan", object=str(key), owner=str(key_of(owner)))
        return
    raise Conflict(f"{key}, which {key_of(owner)} owns, changed {MOST_TRIES} times meanwhile; try again")
