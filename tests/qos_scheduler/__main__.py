"""Runs case files: `python -m tests.qos_scheduler DIR`.

Every list of a file that a rule is known for is a section of cases; one line says whether a case passes. What a file
tells about itself is no case; a section that nobody knows fails.

Exit status: 0, or 1 when a case failed, or 2 when there is nothing to run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.qos_scheduler.scenarios import sentences
from tests.qos_scheduler.sections import SECTIONS, Unmet


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.qos_scheduler DIR", file=sys.stderr)
        return 2
    failures = [why for file in sorted(Path(arguments[0]).glob("*.json")) for why in outcomes(file)]
    failed = sum(why is not None for why in failures)
    print(f"total: {len(failures) - failed} pass, {failed} fail")
    return 2 if not failures else int(failed > 0)


def outcomes(file: Path) -> Iterator[str | None]:
    """Of each case: why it fails."""
    for name, run, case in cases(json.loads(file.read_text())):
        try:
            run(case)
            why = None
        except Unmet as unmet:
            why = str(unmet)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"cannot be run: {type(error).__name__} {error}"
        print(f"pass {file.stem}/{name}" if why is None else f"fail {file.stem}/{name}: {why}")
        yield why


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, rule and case."""
    if "acceptance" in document.get("expected", {}):
        yield from ((name, SECTIONS["acceptance"], case) for name, case in sentences(document))
        return
    for section, held in document.items():
        if isinstance(held, list):
            for n, case in enumerate(held):
                yield f"{section}[{named(case, n)}]", SECTIONS.get(section, unknown(section)), case


def named(case: Any, number: int) -> str:
    inner = case.get("input", {}) if isinstance(case, dict) else {}
    words = [case.get("id"), inner.get("id")] if isinstance(case, dict) and isinstance(inner, dict) else []
    return next((str(word) for word in words if word), str(number))


def unknown(section: str) -> Any:
    def run(_: Any) -> None:
        raise Unmet(f"no rule is known for cases of {section!r}")

    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
