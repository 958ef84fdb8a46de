"""Objects from YAML and JSON files: every file is read and every object checked before anything is used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from j10ce.cli.paths import same_object
from j10ce.errors import Finding, Invalid, NotFound
from j10ce.model.bounds import MOST_DEPTH
from j10ce.model.kinds import Tier
from j10ce.model.schema import REPEATED, kind_of, plain, salvage
from j10ce.policy.validation.validate import validate

ENDINGS = (".yaml", ".yml", ".json")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(names: Iterable[str]) -> list[dict[str, Any]]:
    """The checked plain objects of files and directories, in order; Invalid names file, object and field.

    Values are spelled as the API spells them, defaults left out.
    """
    return [{k: v for k, v in plain(obj).items() if k in raw} for raw, obj in load_checked(names)]


def load_checked(names: Iterable[str], foreign: frozenset[str] = frozenset()) -> list[tuple[dict[str, Any], Any]]:
    """(plain, decoded) pairs. Kinds in `foreign` (Pod, Node) are passed on undecoded."""
    findings: list[Finding] = []
    out: list[tuple[dict[str, Any], Any]] = []
    places: dict[tuple[str, ...], str] = {}
    for name, text in texts(names):
        documents = _documents(name, text)
        findings += _repeated_keys(name, text)
        for index, raw in enumerate(documents):
            where = f"{name}#{index + 1}"
            obj, wrong = (None, []) if _is_one_of(foreign, raw) else _checked(raw)
            findings += [f._replace(path=f"{where} {f.path}".rstrip()) for f in wrong]
            out.append((raw, obj))
            if not wrong and (key := same_object(raw)):
                findings += _repeated_object(where, key, places.setdefault(key, where))
    if findings:
        raise Invalid(findings, "manifests")
    if not out:
        raise Invalid([Finding(" ".join(names), None, "no objects found", "give YAML or JSON files")], "manifests")
    return out


def _is_one_of(kinds: frozenset[str], raw: Any) -> bool:
    kind = raw.get("kind") if isinstance(raw, dict) else None
    return isinstance(kind, str) and kind in kinds


def _checked(raw: Any) -> tuple[Any, list[Finding]]:
    """The object and every mistake in it: those of its shape, and of its values as far as they can be read."""
    try:
        obj, findings = _readable(raw, kind_of(raw).struct)
    except Invalid as e:
        return None, list(e.findings)
    except RecursionError:
        return None, [Finding("", None, "nested too deeply", f"nest at most {MOST_DEPTH} levels")]
    wrong = [f.path for f in findings]
    values = validate(obj) if obj else []
    # What was cut out for its shape is neither missing nor empty.
    return obj, [*findings, *(f for f in values if not any(_related(f.path, path) for path in wrong))]


def _readable(raw: Any, struct: type[Struct]) -> tuple[Any, list[Finding]]:
    """A profile is nothing without a tier: for what else is wrong in it, it gets one that no rule looks at."""
    obj, findings = salvage(raw, struct)
    untiered = [f for f in findings if f.path == "spec.tier"]
    if obj is not None or not untiered:
        return obj, findings
    obj, others = salvage({**raw, "spec": {**raw["spec"], "tier": Tier.STANDARD.value}}, struct)
    return obj, [*untiered, *others]


def _related(one: str, other: str) -> bool:
    """Whether one path is, or leads to, the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _repeated_object(where: str, key: tuple[str, ...], first: str) -> list[Finding]:
    """One of the two would win, and which is nobody's wish."""
    kind, *names = key
    twice = f"{kind} {'/'.join(filter(None, names))} stands in {first} already"
    return [] if where == first else [Finding(where, None, twice, "keep one of the two")]


def _repeated_keys(name: str, text: str) -> list[Finding]:
    """The parser would keep the last one without a word."""
    keys = (key for document in yaml.compose_all(text, Loader=LOADER) for key in _repeated(document))
    lines = sorted((key.start_mark.line + 1, key.value) for key in keys)
    return [Finding(f"{name}:{line} {key}", None, REPEATED, "write it once") for line, key in lines]


def _repeated(document: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    """Without recursion: the parser nests deeper than Python does."""
    todo = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.SequenceNode):
            todo += node.value
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                todo.append(value)
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        yield key
                    seen.add(key.value)


def _documents(name: str, text: str) -> list[Any]:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=LOADER)):
            hint = "write it out: a few lines of them can stand for more than this machine has memory"
            raise Invalid([Finding(name, None, "YAML aliases are not taken", hint)], "manifests")
        documents = [d for d in yaml.load_all(text, Loader=LOADER) if d is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as e:
        where = f":{e.problem_mark.line + 1}" if isinstance(e, yaml.MarkedYAMLError) and e.problem_mark else ""
        problem = str(getattr(e, "problem", None) or e)
        raise Invalid([Finding(f"{name}{where}", None, f"not YAML: {problem}", "check indentation and quotes")]) from e
    out: list[Any] = []
    for d in documents:
        out.extend(d.get("items") or [] if isinstance(d, dict) and str(d.get("kind", "")).endswith("List") else [d])
    return out


def texts(names: Iterable[str]) -> list[tuple[str, str]]:
    """(path, content) of files, and of what a directory has of them; NotFound or Invalid names the one that cannot."""
    out = []
    for name in names:
        if name == "-":
            out.append(("stdin", sys.stdin.read()))
            continue
        path = Path(name)
        paths = sorted(p for p in path.iterdir() if p.suffix in ENDINGS) if path.is_dir() else [path]
        for p in paths:
            try:
                out.append((str(p), p.read_text(encoding="utf-8")))
            except FileNotFoundError as e:
                raise NotFound(f"{p}: {e.strerror}") from e
            except (OSError, UnicodeDecodeError) as e:
                reason = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
                raise Invalid([Finding(str(p), None, str(reason), "give a readable YAML or JSON file")], "file") from e
    return out
