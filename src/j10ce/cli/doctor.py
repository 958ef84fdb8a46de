"""doctor: what this machine can enforce, what is missing, and how to get it."""

from __future__ import annotations

from typing import Any

import click

from j10ce.cli.output import dump, say, table
from j10ce.cli.peers import Peers, output_option
from j10ce.errors import Unreachable


@click.command("doctor")
@output_option
@click.pass_obj
def doctor_command(peers: Peers, output: str) -> None:
    """What this machine can enforce, what is missing and how to get it. Works without an agent.

    \b
    Example:
      j10ce-qos doctor
    """
    try:
        told = peers.agent().get("/v1/doctor")
    except Unreachable:
        told = examine()
    say(dump(told, output) if output in ("json", "yaml") else long_doctor(told))


def examine() -> dict[str, Any]:
    """The agent's own examination, made in this process."""
    from j10ce.kernel.probe import examine as probe
    from j10ce.model.schema import plain

    return {"capabilities": [plain(c) for c in probe()]}


def long_doctor(told: dict[str, Any]) -> str:
    caps = told["capabilities"]
    rows = [["ok" if c.get("ok") else "missing", c["feature"], c.get("via"), _advice(c)] for c in caps]
    return table(["", "FEATURE", "VIA", "NOTE"], rows) + "\n" + verdict(caps)


def short_doctor(told: dict[str, Any]) -> str:
    """One line of what works, and one per thing that does not."""
    caps = told["capabilities"]
    good = [c["feature"] for c in caps if c.get("ok")]
    bad = [f"  missing  {c['feature']}: {_advice(c)}" for c in caps if not c.get("ok")]
    return "\n".join(["can enforce  " + ", ".join(good), *bad, verdict(caps)])


def verdict(caps: list[dict[str, Any]]) -> str:
    missing = sum(1 for c in caps if not c.get("ok"))
    return f"{len(caps) - missing} of {len(caps)} features work here" + (
        f"; {missing} missing, see above" if missing else ""
    )


def _advice(c: dict[str, Any]) -> str:
    needs = f"needs {c['needs']}" if c.get("needs") and not c.get("ok") else ""
    instead = f"instead: {c['instead']}" if c.get("instead") else ""
    return "; ".join(filter(None, (needs, instead)))
