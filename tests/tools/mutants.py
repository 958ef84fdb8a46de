"""The tool that is no module of any package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

_FILE = Path(__file__).resolve().parents[2] / "tools/mutants.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("tools_mutants", _FILE)
    if spec is None or spec.loader is None:
        raise ImportError(_FILE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _load()
MUTANTS = TOOL.load()
