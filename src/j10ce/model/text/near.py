"""What a mistyped word was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST: Final = 64  # characters of a name that someone may have meant


def near(word: str, known: Iterable[str]) -> str:
    """The known name that `word` most resembles, whatever its case; empty where none does."""
    from difflib import get_close_matches  # loaded for mistakes alone

    names = {name.lower(): name for name in sorted(known, reverse=True)}
    wanted = word.lower()[:LONGEST]
    within = [name for name in sorted(names) if len(wanted) > 2 and wanted in name]  # `profiles` of `qosprofiles`
    matches = get_close_matches(wanted, names, 1) or within
    return names[matches[0]] if matches else ""


def one_of(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is none of the known ones: what it resembles, and what there is."""
    names = tuple(known)
    meant = near(word, names)
    return f"{f'did you mean {meant}? ' if meant else ''}use one of {', '.join(names)}"
