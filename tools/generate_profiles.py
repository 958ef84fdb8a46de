"""Write docs/profiles.md: every built-in profile and every knob, from the tables that the code itself uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CLONE / "src"))

from j10ce.model.kinds import QoSProfile  # noqa: E402
from j10ce.model.knob import KNOBS  # noqa: E402
from j10ce.policy.profiles import builtin, describe  # noqa: E402

HEAD = """# Profiles and knobs

A profile is a level of service. A workload chooses one by the label `j10ce.io/qos-profile` (`run --profile`), else a
profile's selector chooses it. Display names work too: `GuaranteedPro`, `LSE`. The *tier* of a profile says who gives
way to whom: system, exclusive, reserved, sensitive, standard, besteffort, from the best protected to the least.

The profiles system, lse, lsr, guaranteed-pro and realtime may be chosen only in namespaces that an administrator
lists; on a bare host root alone may choose them.

`make generate` writes this page from `policy/profiles.py` and `model/controls/table.py`.

## Built-in profiles

Each column is one or more profiles that do the same. Letters are explained below the table.
"""
WHOLE_CPUS = """## CPUs of its own

A workload whose CPU floor is a number of whole CPUs gets that many for itself, if its profile says so:

| `cpu.pinning` | |
|---|---|
| `exclusive` | it runs on its CPUs, everyone else of ours keeps off |
| `reserved` | likewise, but best effort may use what is idle there, where it gives way (**1**) |
| `shared`, `none` | it runs on the CPUs that nobody has for itself |

**1** Best effort gives way where it is idle (`cpu.idle`) or capped by `cpu-suppress`; where it is neither, it keeps
off.

| `cpu.bind` | |
|---|---|
| not set | whole cores first, then CPUs of one last-level cache, one memory node, one socket |
| `full-cores` | whole cores only; where none make up the number, the floor is kept by weight alone |
| `spread` | one CPU of each core, as near to each other as possible; a second one of a core when all have one |

A workload keeps the CPUs that it has: a larger floor adds what is next to them, a smaller one gives some back. Of
equally good places the fullest is taken, then the one with the highest numbers, so that the lowest core stays common
for longest; one CPU always does. CPUs that a kubelet's static policy gave to containers stay theirs, and such a pod is
left as it is. `j10ce-qos doctor` and `j10ce-qos describe node NAME` show which CPUs share what.
"""
MEMORY = """## Memory

[Memory of workloads](memory.md) has the fields of section `memory`, and how memory is taken back.
"""
CACHES = """## The last-level cache and memory bandwidth

Section `cache` works where the CPU, the kernel and a mounted `/sys/fs/resctrl` offer it. The agent does not mount it
(`mount -t resctrl resctrl /sys/fs/resctrl`); `doctor` and `explain` say what is missing. Controller `cache`:

| field | unit | default |
|---|---|---|
| `llcStartPercent` | percent of the ways of each last-level cache, 0 to 100 | 0 |
| `llcEndPercent` | the same, above the start | 100 |
| `memoryBandwidthPercent` | percent, 1 to 100 | no limit |

Of *w* ways a group has those from ⌈w · start⌉ to ⌈w · end⌉, and at least as many as the CPU needs. Bandwidth is rounded
up to the step of the CPU (Intel 10, ARM its own); on AMD it is ⌊160 · percent⌋ eighths of a GB/s, and 2048 at 100. If
resctrl is mounted with `mba_MBps`, a percentage means nothing, and `explain` says so.

All workloads of a profile share one group, `j10ce-<profile>`; a workload with cache settings of its own has its own
group, `j10ce-<namespace>_<name>`. A CPU has few groups (often 15 besides the root's). Profiles get theirs first, from
the best tier down, then single workloads by tier and priority. If no group is left, a workload shares that of its
profile, or else the root's, and `explain` says why. Tier system, and all that have no section `cache`, stay in the
root's group. Groups of others are left alone. Every thread is put into its group, new ones when their workload is
looked at again (32 of them in a tick); a group that nobody needs is removed.

## Who shares a core

With `cpu.coreSched: true`, the hyperthreads of one core run threads of only one group at a time. It needs a kernel ≥
5.14 with `CONFIG_SCHED_CORE`, and SMT; without them nothing changes, and `doctor` and `explain` say so. Controller
`core-sched`: tiers exclusive, reserved and sensitive are one group (`shared-expeller`), standard and besteffort another
(`shared`): the second never runs beside the first; tier system has none. `cpu.coreExpeller` says otherwise for one
profile: true is in the first, false in the second. Every thread, new ones included, gets the cookie of its group, and a
revert takes it back. A workload to which someone else gave a cookie is left alone.
"""
SHORT = 40  # letters of a text that stands in the table itself


def main() -> int:
    lines = [HEAD, *matrix(builtin()), "", WHOLE_CPUS, MEMORY, CACHES, *knobs()]
    (CLONE / "docs/profiles.md").write_text("\n".join(lines) + "\n")
    return 0


def matrix(profiles: Sequence[QoSProfile]) -> Iterator[str]:
    """Profiles as columns, knobs as rows; what takes many words is a letter."""
    columns: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for profile in profiles:
        described = [(knob, text) for knob, text in describe(profile) if not KNOBS[knob].rare]  # none speaks of those
        effects = (("tier", profile.spec.tier.value), *described)
        columns.setdefault(effects, []).append(f"`{profile.metadata.name}`")
    letters: dict[str, str] = {}
    yield f"| | {' | '.join(', '.join(names) for names in columns.values())} |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in zip(*columns, strict=True):
        cells = (text if len(text) <= SHORT else letters.setdefault(text, _letter(len(letters))) for _, text in row)
        knob = row[0][0]
        yield f"| {knob if knob == 'tier' else f'`{knob}`'} | {' | '.join(cells)} |"
    yield ""
    yield from (f"* **{letter}** {text}" for text, letter in letters.items())


def _letter(number: int) -> str:
    return chr(ord("a") + number)


def knobs() -> Iterator[str]:
    yield from ("## Knobs", "")
    yield "| knob | on cgroup v1 | as a unit property | unit | role | meaning |"
    yield "|---|---|---|---|---|---|"
    for k in KNOBS.values():
        v1 = f"`{k.v1}`" if k.v1 else "–"
        unit = f"`{k.systemd}`" if k.systemd else "–"
        yield f"| `{k.name}` | {v1} | {unit} | {k.unit.value} | {k.role.value} | {k.meaning} |"


if __name__ == "__main__":
    sys.exit(main())
