"""What `pytest -v` says, line by line."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

ONE_TEST = re.compile(r"^tests/.* (?P<word>[A-Z]+)(?: \(.*)? +\[ *(?P<percent>\d+)%\]$")
ONE_OF_SEVERAL_WORKERS = re.compile(r"^\[gw\d+\] \[ *(?P<percent>\d+)%\] (?P<word>[A-Z]+) ")
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$")
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+?(?::\d+)?: (?:Unsupported: )?(.*)$")
SUMMARY = re.compile(r"^=* ?((?:\d+ \w+,? ?)+) in [\d.]+s")
COUNT = re.compile(r"(\d+) (\w+)")
HEADING = re.compile(r"=+ (?:FAILURES|ERRORS) =+")
CRASHED_LINES = 60


@dataclass
class Reading:
    percent: int = 0
    failures: int = 0  # so far
    failed: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)  # reason: tests
    counts: dict[str, int] = field(default_factory=dict)  # of the summary: passed, failed, skipped, ...
    complaint: list[str] = field(default_factory=list)
    reporting: bool = False

    def take(self, line: str) -> None:
        line = line.rstrip()
        if match := ONE_TEST.match(line) or ONE_OF_SEVERAL_WORKERS.match(line):
            self.percent = int(match["percent"])
            self.failures += match["word"] in ("FAILED", "ERROR")
            return
        if match := FAILED.match(line):
            self.failed.append(match[1])
        elif match := SKIPPED.match(line):
            self.left_out[match[2]] += int(match[1])
        elif match := SUMMARY.match(line):
            self.counts = {what: int(n) for n, what in COUNT.findall(match[1])}
        self._keep(line)

    def _keep(self, line: str) -> None:
        """What to show of a run that failed: from pytest's first heading on, or the end of what was no report."""
        if not self.reporting and HEADING.match(line):
            self.reporting, self.complaint = True, []
        self.complaint.append(line)
        if not self.reporting:
            self.complaint = self.complaint[-CRASHED_LINES:]

    @property
    def all_named(self) -> bool:
        """Whether every failure can be tried again by its name."""
        counted = sum(self.counts.get(word, 0) for word in ("failed", "error", "errors"))
        return 0 < len(self.failed) == counted
