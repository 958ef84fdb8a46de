"""The page on security shows the rights as they are."""

from __future__ import annotations

from j10ce.manager.access import token_file
from j10ce.manager.access.roles import KINDS_ASKED, RIGHTS
from j10ce.manager.identity import READS, WRITES, Role
from tests.docs.pages import CLONE, blocks


def table() -> str:
    heads = ["what", *(role.value for role in Role)]
    rows = [[f"`{kind}`", *(cell(role, kind) for role in Role)] for kind in KINDS_ASKED]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def cell(role: Role, kind: str) -> str:
    rights = RIGHTS[role]
    reads = [v for v in READS if (kind, v, "spec") in rights]
    writes = [v for v in WRITES if (kind, v, "spec") in rights]
    status = [v for v in WRITES if (kind, v, "status") in rights and v not in writes]
    words = ["read"] if len(reads) == len(READS) else reads
    words += ["write"] if len(writes) == len(WRITES) else writes
    words += [f"{v} status" for v in status]
    own = any(mine for (k, _, _), mine in rights.items() if k == kind)
    return (", ".join(words) + (" of its own" if own else "")) or "–"


def test_the_table_of_rights_is_the_one_in_force() -> None:
    assert table() in (CLONE / "docs/security.md").read_text()


def test_the_auth_file_on_the_page_is_one() -> None:
    (shown,) = [b for b in blocks() if b.page == "docs/security.md" and b.language == "yaml"]
    assert [known.role for known in token_file.parse(shown.text.encode()).tokens] == ["editor", "node"]
