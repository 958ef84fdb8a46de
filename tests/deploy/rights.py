"""The table of rights in docs/kubernetes.md, and rules of RBAC in its form."""

from __future__ import annotations

from collections.abc import Iterator

from tests.deploy.dockerfiles import CLONE

PAGE = (CLONE / "docs/kubernetes.md").read_text()


def columns_of(rule: dict[str, list[str]]) -> tuple[str, ...]:
    group = ", ".join(rule["apiGroups"]) or "core"
    return group, *(", ".join(rule.get(key, ())) or "–" for key in ("resources", "resourceNames", "verbs"))


def table() -> Iterator[tuple[str, ...]]:
    for line in PAGE.splitlines():
        if line.startswith("| `j10ce-"):
            *cells, why = (cell.strip().replace("`", "") for cell in line.strip("|").split("|"))
            assert why, line
            yield tuple(cells)
