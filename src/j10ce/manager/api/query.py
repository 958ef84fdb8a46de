"""What a list or a watch asks for: selectors, pages, revisions."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from j10ce.errors import Finding, Invalid, shown
from j10ce.model.bounds import MOST_SELECTOR, MOST_WORD
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import Object, Requirement, Selector
from j10ce.model.stored import Key
from j10ce.model.text.cells import text_at
from j10ce.policy.document.document import FORMAT, FORMATS
from j10ce.policy.select import Test, compiled, everything

LABEL_KEY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*")
LABEL_VALUE: Final = re.compile(r"[-A-Za-z0-9_.]*")
HINT: Final = "write it as a=b,c!=d,e in (f,g),h notin (i),j,!k"
OPERATORS: Final = (("!=", "NotIn"), ("==", "In"), ("=", "In"))  # `==` before the `=` that it begins with
FIELD_TERM: Final = re.compile(r"([A-Za-z.]+)(==|=|!=)(.*)")
NAME, NAMESPACE = "metadata.name", "metadata.namespace"
FIELDS: Final = (NAME, NAMESPACE)
ANY_REVISION: Final = "0"  # what is at hand, however old: Kubernetes' own word for it
EXACT, NOT_OLDER = "Exact", "NotOlderThan"
MATCHES: Final = (EXACT, NOT_OLDER)
FLAGS: Final = ("1", "true", "0", "false")
MOST: Final = 1_000_000
MOST_TOKEN: Final = 2048  # characters of a token that goes on with a list
MOST_TERMS: Final = 8  # of a field selector: each is looked at for every object, in one step
LONGEST_S: Final = 3600.0


class Position(NamedTuple):
    """Where a page ended, and the revision of the first page: a watch from there misses nothing."""

    revision: str
    after: Key


class FieldTerm(NamedTuple):
    """One part of a field selector."""

    path: str
    value: str
    equal: bool = True

    def holds(self, obj: Object) -> bool:
        if self.path == NAMESPACE:
            actual = obj.metadata.namespace
        else:
            actual = obj.metadata.name if self.path == NAME else text_at(obj, self.path)
        return (actual == self.value) is self.equal


class Query(NamedTuple):
    matches: Test
    fields: tuple[FieldTerm, ...] = ()
    limit: int = 0
    position: Position | None = None
    watch: bool = False
    since: str = ""
    bookmarks: bool = False
    initial: bool | None = None  # whether a watch begins with the present state; None: when it has no revision
    exact: bool = False  # of the revision that is asked for, or not at all
    timeout_s: float = LONGEST_S
    changes: bool = False  # of a document: tell what is other than before
    format: int = 0  # of a document: the latest that the caller reads; 0: it does not say

    @property
    def selects_all(self) -> bool:
        return not self.fields and self.matches is everything

    def selects(self, obj: Object) -> bool:
        return all(term.holds(obj) for term in self.fields) and self.matches(obj.metadata.labels)

    def within(self, namespace: str | None) -> Query:
        if namespace is None:
            return self
        return self._replace(fields=(*self.fields, FieldTerm(NAMESPACE, namespace)))


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
        since=revision(params, findings),
        bookmarks=_flag(params, "allowWatchBookmarks", findings),
        initial=_flag(params, "sendInitialEvents", findings) if "sendInitialEvents" in params else None,
        exact=_match(params, findings) == EXACT,
        timeout_s=float(_number(params, "timeoutSeconds", findings)) or LONGEST_S,
        changes=_flag(params, "changes", findings),
        format=_format(params, findings),
    )
    findings += _combined(params, watch=query.watch)
    if findings:
        raise Invalid(findings, "query")
    return query


def label_selector(text: str, findings: list[Finding]) -> Selector:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k` as a Selector; by hand, in one pass."""
    if not _short("labelSelector", text, findings):
        return Selector()
    wanted: list[Requirement] = []
    for term in _terms(text) if text.strip() else ():
        requirement = _requirement(term.strip())
        if requirement is None:
            findings.append(Finding("labelSelector", text, f"not understood at {shown(term.strip())}", HINT))
            break
        wanted.append(requirement)
    return Selector(match_expressions=tuple(wanted))


def _terms(text: str) -> list[str]:
    """Between the commas that stand outside of brackets."""
    parts = text.split(",")
    terms: list[str] = []
    for part in parts:
        if terms and terms[-1].count("(") > terms[-1].count(")"):
            terms[-1] += f",{part}"
        else:
            terms.append(part)
    return terms


def _requirement(term: str) -> Requirement | None:
    """None: not understood."""
    if term.startswith("!") and _is_key(key := term[1:].strip()):
        return Requirement(key=key, operator="DoesNotExist")
    if term.endswith(")"):
        return _among(term)
    for sign, operator in OPERATORS:
        key, separator, value = (part.strip() for part in term.partition(sign))
        if separator:
            right = _is_key(key) and LABEL_VALUE.fullmatch(value)
            return Requirement(key=key, operator=operator, values=(value,)) if right else None  # type: ignore[arg-type]
    return Requirement(key=term, operator="Exists") if _is_key(term) else None


def _among(term: str) -> Requirement | None:
    """`e in (f,g)`, `h notin (i)`"""
    before, _, inside = term.removesuffix(")").partition("(")
    words, values = before.split(), tuple(value.strip() for value in inside.split(","))
    if len(words) != 2 or not _is_key(words[0]) or not all(map(LABEL_VALUE.fullmatch, values)):
        return None
    match words[1]:
        case "in":
            return Requirement(key=words[0], operator="In", values=values)
        case "notin":
            return Requirement(key=words[0], operator="NotIn", values=values)
        case _:
            return None


def _is_key(text: str) -> bool:
    return LABEL_KEY.fullmatch(text) is not None


def _short(name: str, text: str, findings: list[Finding]) -> bool:
    if len(text) <= MOST_SELECTOR:
        return True
    findings.append(Finding(name, text, "too long", f"write at most {MOST_SELECTOR} characters"))
    return False


def field_selector(text: str, kind: Kind | None, findings: list[Finding]) -> tuple[FieldTerm, ...]:
    """`status.phase=Active,metadata.name!=db`"""
    if not _short("fieldSelector", text, findings):
        return ()
    known = fields_of(kind)
    parts = [*dict.fromkeys(filter(None, text.split(",")))]
    if len(parts) > MOST_TERMS:
        findings.append(Finding("fieldSelector", text, f"{len(parts)} terms", f"write at most {MOST_TERMS}"))
        return ()
    wanted: list[FieldTerm] = []
    for part in parts:
        term = FIELD_TERM.fullmatch(part)
        if term is None or term[1] not in known:
            hint = "use " + " or ".join(f"{field}=VALUE" for field in known)
            findings.append(Finding("fieldSelector", part, "not supported", hint))
        else:
            wanted.append(FieldTerm(term[1], term[3], term[2] != "!="))
    return tuple(wanted)


def fields_of(kind: Kind | None) -> tuple[str, ...]:
    """What a field selector may ask for: names, and whatever a listing shows."""
    return (*FIELDS, *(column.path for column in kind.columns)) if kind else FIELDS


def encode(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def decode(token: str, findings: list[Finding]) -> Position | None:
    try:
        if len(token) > MOST_TOKEN:
            raise ValueError
        position = msgspec.json.decode(base64.urlsafe_b64decode(token), type=Position)
        if not _is_revision(position.revision):
            raise ValueError
        return position
    except ValueError:
        findings.append(Finding("continue", token, "not a token of this server", "start again without it"))
        return None


def _number(params: Mapping[str, str], name: str, findings: list[Finding]) -> int:
    text = params.get(name, "0")
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= MOST:
        return int(text)
    findings.append(Finding(name, text, "not a number in range", f"write 0 to {MOST}"))
    return 0


def _format(params: Mapping[str, str], findings: list[Finding]) -> int:
    """A caller that reads later formats, too, is told the present one."""
    wanted = min(_number(params, "format", findings), FORMAT)
    if wanted and wanted not in FORMATS:
        known = " or ".join(map(str, sorted(FORMATS)))
        findings.append(Finding("format", wanted, "nobody speaks it any more", f"documents are told in format {known}"))
    return wanted


def revision(params: Mapping[str, str], findings: list[Finding]) -> str:
    text = params.get("resourceVersion", "")
    if text and not _is_revision(text):
        findings.append(Finding("resourceVersion", text, "not a revision of this server", "use one of an answer"))
    return text


def _is_revision(text: str) -> bool:
    return len(text) <= MOST_WORD and text.isascii() and text.isdecimal()


def _match(params: Mapping[str, str], findings: list[Finding]) -> str:
    text = params.get("resourceVersionMatch", "")
    if text not in ("", *MATCHES):
        findings.append(Finding("resourceVersionMatch", text, "unknown", "write " + " or ".join(MATCHES)))
    return text


def _combined(params: Mapping[str, str], *, watch: bool) -> Iterator[Finding]:
    """What makes no sense together, as Kubernetes has it."""
    match, since = params.get("resourceVersionMatch", ""), params.get("resourceVersion", "")
    initial = params.get("sendInitialEvents")
    if watch:
        if initial is not None and match != NOT_OLDER:
            yield Finding("sendInitialEvents", initial, "nothing says how old", f"add resourceVersionMatch={NOT_OLDER}")
        elif match and initial is None:
            yield Finding("resourceVersionMatch", match, "not of a watch", "leave it out, or add sendInitialEvents")
        return
    if initial is not None:
        yield Finding("sendInitialEvents", initial, "not of a list", "leave it out, or add watch=1")
    if match and not since:
        yield Finding("resourceVersionMatch", match, "no resourceVersion to match", "give both or neither")
    if match == EXACT and since == ANY_REVISION:
        yield Finding("resourceVersionMatch", match, "0 is no revision but any", f"use {NOT_OLDER}")
    if params.get("continue") and (match or since not in ("", ANY_REVISION)):
        yield Finding("resourceVersion", since, "the token has its own", "leave it out beside continue")


def _flag(params: Mapping[str, str], name: str, findings: list[Finding]) -> bool:
    text = params.get(name, "0")
    if text not in FLAGS:
        findings.append(Finding(name, text, "not a truth value", "write " + ", ".join(FLAGS)))
    return text in ("1", "true")
