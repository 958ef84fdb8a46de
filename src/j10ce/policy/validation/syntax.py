"""The spelling of names, labels, selectors and targets: Kubernetes' rules, so that every object fits there, too.

A name becomes part of paths and unit names; these rules leave no room for `/`, `..` or control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from j10ce.errors import Finding
from j10ce.model.bounds import MOST_WHY, MOST_WORD
from j10ce.model.kinds import Selector

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 9998
LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
STEP: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = re.compile(rf"(?=.{{1,253}}\Z){STEP}(?:\.{STEP})*")
QUALIFIED: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
PATH_STEP: Final = re.compile(r"(?!\.{1,2}\Z)[^/\x00-\x1f\x7f]{1,255}")

NAME_HINT: Final = "use lower-case letters, digits, '-' and '.', at most 253 characters"
NAMESPACE_HINT: Final = "use lower-case letters, digits and '-', at most 63 characters"
LABEL_HINT: Final = "use letters, digits, '-', '_' and '.', at most 63 characters, a letter or digit at both ends"


def name(path: str, value: str, *, most: int = 253) -> Iterator[Finding]:
    if not SUBDOMAIN.fullmatch(value) or len(value) > most:
        yield Finding(path, value, "not a name", NAME_HINT.replace("253", str(most)))


def namespace(path: str, value: str) -> Iterator[Finding]:
    if not LABEL.fullmatch(value):
        yield Finding(path, value, "not a namespace", NAMESPACE_HINT)


def labels(path: str, values: Mapping[str, str]) -> Iterator[Finding]:
    for key, value in values.items():
        yield from label_key(f"{path}.{key}", key)
        yield from label_value(f"{path}.{key}", value)


def label_key(path: str, key: str) -> Iterator[Finding]:
    prefix, slash, rest = key.rpartition("/")
    if (slash and not SUBDOMAIN.fullmatch(prefix)) or not QUALIFIED.fullmatch(rest):
        yield Finding(path, key, "not a label key", f"{LABEL_HINT}; a DNS name and '/' may go before it")


def label_value(path: str, value: str) -> Iterator[Finding]:
    if value and not QUALIFIED.fullmatch(value):
        yield Finding(path, value, "not a label value", LABEL_HINT)


def selector(path: str, wanted: Selector) -> Iterator[Finding]:
    yield from labels(f"{path}.matchLabels", wanted.match_labels)
    for n, r in enumerate(wanted.match_expressions):
        here = f"{path}.matchExpressions[{n}]"
        yield from label_key(f"{here}.key", r.key)
        for m, value in enumerate(r.values):
            yield from label_value(f"{here}.values[{m}]", value)
        if (r.operator in ("In", "NotIn")) != bool(r.values):
            needs = "needs at least one value" if not r.values else "takes no values"
            yield Finding(f"{here}.values", list(r.values), f"{r.operator} {needs}")


def is_target(value: str) -> bool:
    return len(value) <= MOST_WORD and _is_target(value)


@lru_cache(4096)  # many holds are of one target; what is kept stays, so it must be short
def _is_target(value: str) -> bool:
    match value.split("/"):
        case ["node"] | ["group", ""]:
            return True
        case ["group", *steps]:
            return bool(steps) and all(PATH_STEP.fullmatch(s) for s in steps)
        case ["workload", _, _] | ["part", _, _, _] as named:
            return _named(named[1:])
        case ["resctrl", name]:
            return bool(PATH_STEP.fullmatch(name))
        case _:
            return False


def target(path: str, value: str) -> Iterator[Finding]:
    """`node`, `group/<path>`, `workload/<ns>/<name>` or `part/<ns>/<name>/<part>`."""
    if not is_target(value):
        hint = "use node, group/<path>, workload/<namespace>/<name> or part/<namespace>/<name>/<part>"
        yield Finding(path, value, "not a target", hint)


def _named(steps: list[str]) -> bool:
    return LABEL.fullmatch(steps[0]) is not None and all(SUBDOMAIN.fullmatch(s) for s in steps[1:])


def reason(path: str, value: str) -> Iterator[Finding]:
    if len(value) > MOST_WHY:
        yield Finding(path, None, f"{len(value)} characters", f"say it in {MOST_WHY}: it goes to all nodes")


def moment(path: str, time: datetime) -> Iterator[Finding]:
    """A time with a zone, far enough from both ends of the calendar to be written in any other zone."""
    if time.tzinfo is None:
        yield Finding(path, time.isoformat(), "no time zone", "write it as 2026-01-31T12:00:00Z")
    elif not FIRST_YEAR <= time.year <= LAST_YEAR:
        yield Finding(path, time.isoformat(), "out of range", f"between the years {FIRST_YEAR} and {LAST_YEAR}")
