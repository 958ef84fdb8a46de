"""The options of a daemon: by their whole names, and a mistyped one is answered with the one that was meant."""

from __future__ import annotations

import argparse
from typing import Any, Final, NoReturn

from j10ce.model.text.near import near

WRONG_USAGE: Final = 2
UNKNOWN: Final = "unrecognized arguments: "


class OptionParser(argparse.ArgumentParser):
    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        if message.startswith(UNKNOWN):
            word = message.removeprefix(UNKNOWN).split()[0].partition("=")[0]
            meant = near(word, self._option_string_actions) if word.startswith("-") else ""
            message = f"no such option: {word}{f'; did you mean {meant}?' if meant else ''}"
        self.exit(WRONG_USAGE, f"{self.prog}: {message}\n`{self.prog} --help` lists the options\n")
