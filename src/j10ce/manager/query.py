"""What a list or a watch asks for: selectors, pages, revisions."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from j10ce.errors import Finding, Invalid
from j10ce.model.catalogue import Kind
from j10ce.model.cells import text_at
from j10ce.model.kinds import Object, Requirement, Selector
from j10ce.policy.select import Test, compiled
from j10ce.store.revise import Key

LABEL_KEY: Final = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
TERM: Final = re.compile(
    rf"\s*(?:(?P<key>{LABEL_KEY})\s*(?P<op>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)"
    rf"|(?P<set>{LABEL_KEY})\s+(?P<in>in|notin)\s*\((?P<values>[-A-Za-z0-9_.,\s]*)\)"
    rf"|(?P<no>!?)\s*(?P<has>{LABEL_KEY}))\s*"
)
FIELD_TERM: Final = re.compile(r"([A-Za-z.]+)(==|=|!=)(.*)")
NAME, NAMESPACE = "metadata.name", "metadata.namespace"
FIELDS: Final = (NAME, NAMESPACE)
ANY_REVISION: Final = "0"  # what is at hand, however old: Kubernetes' own word for it
FLAGS: Final = ("1", "true", "0", "false")
MOST: Final = 1_000_000
LONGEST_S: Final = 3600.0


class Position(NamedTuple):
    """Where a page ended, and the revision of the first page: a watch from there misses nothing."""

    revision: str
    after: Key


class Term(NamedTuple):
    """One part of a field selector."""

    path: str
    value: str
    equal: bool = True

    def holds(self, obj: Object) -> bool:
        if self.path == NAMESPACE:
            found = obj.metadata.namespace
        else:
            found = obj.metadata.name if self.path == NAME else text_at(obj, self.path)
        return (found == self.value) is self.equal


class Query(NamedTuple):
    matches: Test
    fields: tuple[Term, ...] = ()
    limit: int = 0
    position: Position | None = None
    watch: bool = False
    since: str = ""
    bookmarks: bool = False
    initial: bool | None = None  # whether a watch begins with the present state; None: when it has no revision
    exact: bool = False  # of the revision that is asked for, or not at all
    timeout_s: float = LONGEST_S

    def selects(self, obj: Object) -> bool:
        return all(term.holds(obj) for term in self.fields) and self.matches(obj.metadata.labels)

    def within(self, namespace: str | None) -> Query:
        if namespace is None:
            return self
        return self._replace(fields=(*self.fields, Term(NAMESPACE, namespace)))


EVERYTHING: Final = Query(compiled(Selector()))


def read(params: Mapping[str, str], kind: Kind | None = None) -> Query:
    """The query parameters; raises Invalid with all findings. Unknown ones are ignored, as everywhere in HTTP."""
    if not params:
        return EVERYTHING
    findings: list[Finding] = []
    query = Query(
        matches=compiled(label_selector(params.get("labelSelector", ""), findings)),
        fields=field_selector(params.get("fieldSelector", ""), kind, findings),
        limit=_number(params, "limit", findings),
        position=decode(params["continue"], findings) if params.get("continue") else None,
        watch=_flag(params, "watch", findings),
        since=params.get("resourceVersion", ""),
        bookmarks=_flag(params, "allowWatchBookmarks", findings),
        initial=_flag(params, "sendInitialEvents", findings) if "sendInitialEvents" in params else None,
        exact=params.get("resourceVersionMatch") == "Exact",
        timeout_s=float(_number(params, "timeoutSeconds", findings)) or LONGEST_S,
    )
    if findings:
        raise Invalid(findings, "query")
    return query


def label_selector(text: str, findings: list[Finding]) -> Selector:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k` as a Selector."""
    wanted: list[Requirement] = []
    at = 0
    while at < len(text.rstrip()):
        term = TERM.match(text, at)
        if term is None or (term.end() < len(text) and text[term.end()] != ","):
            hint = "write it as a=b,c!=d,e in (f,g),h notin (i),j,!k"
            findings.append(Finding("labelSelector", text, f"not understood at {text[at:]!r}", hint))
            break
        wanted.append(_requirement(term))
        at = term.end() + 1
    return Selector(match_expressions=tuple(wanted))


def _requirement(term: re.Match[str]) -> Requirement:
    if term["key"]:
        return Requirement(key=term["key"], operator="NotIn" if term["op"] == "!=" else "In", values=(term["value"],))
    if term["set"]:
        values = tuple(value.strip() for value in term["values"].split(","))
        return Requirement(key=term["set"], operator="In" if term["in"] == "in" else "NotIn", values=values)
    return Requirement(key=term["has"], operator="DoesNotExist" if term["no"] else "Exists")


def field_selector(text: str, kind: Kind | None, findings: list[Finding]) -> tuple[Term, ...]:
    """`status.phase=Active,metadata.name!=db`"""
    known = fields_of(kind)
    wanted: list[Term] = []
    for part in filter(None, text.split(",")):
        term = FIELD_TERM.fullmatch(part)
        if term is None or term[1] not in known:
            hint = "use " + " or ".join(f"{field}=VALUE" for field in known)
            findings.append(Finding("fieldSelector", part, "not supported", hint))
        else:
            wanted.append(Term(term[1], term[3], term[2] != "!="))
    return tuple(wanted)


def fields_of(kind: Kind | None) -> tuple[str, ...]:
    """What a field selector may ask for: names, and whatever a listing shows."""
    return (*FIELDS, *(column.path for column in kind.columns)) if kind else FIELDS


def encode(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def decode(token: str, findings: list[Finding]) -> Position | None:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=Position)
    except ValueError:
        findings.append(Finding("continue", token, "not a token of this server", "start again without it"))
        return None


def _number(params: Mapping[str, str], name: str, findings: list[Finding]) -> int:
    text = params.get(name, "0")
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= MOST:
        return int(text)
    findings.append(Finding(name, text, "not a number in range", f"write 0 to {MOST}"))
    return 0


def _flag(params: Mapping[str, str], name: str, findings: list[Finding]) -> bool:
    text = params.get(name, "0")
    if text not in FLAGS:
        findings.append(Finding(name, text, "not a truth value", "write " + ", ".join(FLAGS)))
    return text in ("1", "true")
