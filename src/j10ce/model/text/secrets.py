"""What looks like a credential, in text that is written down or sent to others."""

from __future__ import annotations

import re
from typing import Final

# Command lines, files and logs may carry what looks like a credential; nobody wants it in a bug tracker. Repetitions
# before the secret itself are bounded: callers write into logs, and a search must not take longer than they write. Nor
# is a run looked at again from each place in it: what cannot match gives nothing back, or is not begun.
WORDS: Final = r"(?:token|password|passwd|passphrase|secret|credential|api[-_]?key|private[-_]?key|key[-_]?data)"
NAME: Final = rf"{WORDS}[\w.-]{{0,64}}[\"']?"
GAP: Final = r"[ \t]{0,8}"
QUOTED: Final = r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'?"
OURS: Final = r"j10ce\.[-a-z0-9.]{1,253}\.[-_A-Za-z0-9]{43}"  # of ours
SECRETS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(-----BEGIN [^-]{0,40}PRIVATE KEY-----)[^-]*",  # to its end, or to the end of the text
        r"(://)(?=[^@]{1,1281}+@)(?:[^\s/@:\"']{0,256}:[^\s\"']{1,1024}|[^\s/@\"']{1,1024})(?=@)",  # in an address
        rf"(authorization[\"']?{GAP}[:=]{GAP})(?:{QUOTED}|[^\r\n]+)",
        r"(\b(?:bearer|basic)[ \t]{1,8})[\w.~+/=-]{6,}",
        rf"((?<!-)-{{2,}}+[\w-]{{0,32}}{WORDS}[\w-]{{0,64}}[ \t]{{1,8}})(?:{QUOTED}|\S+)",  # an option and its value
        rf"({NAME}{GAP}:{GAP}[|>][-+0-9]{{0,3}}\n)(?:[ \t]+[^\n]*\n?)+",  # a block of YAML
        rf"({NAME}{GAP}:{GAP}\n)(?:[ \t]*-[ \t]+[^\s:]+[ \t]*(?:\n|\Z))+",  # a list of YAML
        rf"({NAME}{GAP}[:=]{GAP})\[[^\]{{]+\]?",  # a list of JSON, not of objects
        r"(\bpass(?:word|wd|phrase)[ \t]{1,8})(?![:=(])\S+",
        rf"({NAME}{GAP}={GAP})(?:{QUOTED}|[^\s,;&}}]+)",
        rf"({NAME}{GAP}:{GAP})(?:{QUOTED}|(?![{{\[|>])[^\s\"'][^\r\n]*)",
        r"()(?:(?<![\w-])eyJ[\w-]{8,}+|\beyJ[\w-]{8,512}+)\.[\w-]{8,}(?:\.[\w-]*)?",  # of a service account
        f"(){OURS}",
    )
)


def redact(text: str) -> str:
    """Without the secrets; what they are called stays."""
    for secret in SECRETS:
        text = secret.sub(r"\1(removed)", text)
    return text
