"""Options that take an amount: what is certainly not meant is refused, with what probably is."""

from __future__ import annotations

import mmap
import re
from typing import Any, Final

import click

from j10ce.errors import Invalid
from j10ce.model.quantity import DECIMAL, Quantity

# As other tools write memory: docker's 512m and 2g, and 512MB of everywhere.
MOST_CPUS: Final = 8192  # as many as Linux can be built for
LEAST_BITS: Final = 1000  # nobody means less
ELSEWHERE: Final = re.compile(r"([0-9.]+)\s*([kmgt])i?b?", re.IGNORECASE | re.ASCII)
# As `tc` and everybody else write rates: 100mbit, 100Mbits, 100Mbps.
LINE_RATE: Final = re.compile(r"([0-9.]+)\s*([kmgt])i?(?:b|bits?)?", re.IGNORECASE | re.ASCII)


class Amount(click.ParamType[str]):
    """A quantity, kept as written; a wrong one is a usage error that says what is allowed."""

    name = "quantity"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            quantity = Quantity.parse(value)
        except Invalid as e:
            finding = e.findings[0]
            self.fail(f"{value!r}: {finding.problem}; {self.meant(value) or finding.hint}", param, ctx)
        if problem := self.problem(value, quantity):
            self.fail(problem, param, ctx)
        return str(value)

    def meant(self, text: str) -> str:
        """What a spelling of elsewhere is here; empty where nobody can tell."""
        return ""

    def problem(self, text: str, quantity: Quantity) -> str:
        """Why an amount that can be read is not taken; empty where it is."""
        return ""


class Memory(Amount):
    """Bytes. `512m` is half a byte: whoever writes it comes from a tool where it is half a gigabyte."""

    def meant(self, text: str) -> str:
        match = ELSEWHERE.fullmatch(text.strip())
        return f"did you mean {match[1]}{match[2].upper()}i?" if match else ""

    def problem(self, text: str, quantity: Quantity) -> str:
        if quantity.percent or not 0 < quantity.amount < mmap.PAGESIZE:
            return ""
        hint = self.meant(text) if text.strip()[-1:] in DECIMAL else ""
        size = f"{float(quantity.amount):g} bytes, less than a page of memory ({mmap.PAGESIZE})"
        return f"{text} is {size}; {hint or 'write it as 512Mi'}"


class Cpu(Amount):
    """CPUs. `512Mi` of them is an amount of something else, and `512mi` a slip of a finger."""

    def meant(self, text: str) -> str:
        match = ELSEWHERE.fullmatch(text.strip())
        return f"did you mean {match[1]}m?" if match and match[2] in "mM" else ""

    def problem(self, text: str, quantity: Quantity) -> str:
        if quantity.percent or quantity.amount <= MOST_CPUS:
            return ""
        return f"{text} is more CPUs than any machine has; {self.meant(text) or 'write it as 2 or 1500m'}"


class Bits(Amount):
    """Bits a second. `100Mb` is megabits to some and megabytes to others."""

    def meant(self, text: str) -> str:
        match = LINE_RATE.fullmatch(text.strip().removesuffix("ps").removesuffix("/s"))
        return f"did you mean {match[1]}{_step(match[2])}bit?" if match else ""

    def problem(self, text: str, quantity: Quantity) -> str:
        if quantity.percent or not 0 < quantity.amount < LEAST_BITS:
            return ""
        size = f"{float(quantity.amount):g} bits a second"
        return f"{text} is {size}; {self.meant(text) or 'write it as 100Mbit'}"


class ByteRate(Amount):
    """Bytes a second of a disk."""

    def meant(self, text: str) -> str:
        match = ELSEWHERE.fullmatch(text.strip().removesuffix("ps").removesuffix("/s"))
        return f"did you mean {match[1]}{_step(match[2])}?" if match else ""

    def problem(self, text: str, quantity: Quantity) -> str:
        if quantity.rate:
            return f"{text} is a line rate, in bits; write bytes a second, such as 50M"
        if quantity.percent or not 0 < quantity.amount < mmap.PAGESIZE:
            return ""
        return f"{text} is {float(quantity.amount):g} bytes a second; {self.meant(text) or 'write it as 50M'}"


def _step(letter: str) -> str:
    return letter.lower() if letter in "kK" else letter.upper()


CPU: Final = Cpu()
MEMORY: Final = Memory()
BITS: Final = Bits()
BYTE_RATE: Final = ByteRate()
