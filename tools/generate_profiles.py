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

The profiles system, lse, lsr and guaranteed-pro may be chosen only in namespaces that an administrator lists; on a
bare host root alone may choose them.

`make generate` writes this page from `policy/profiles.py` and `model/knob.py`.

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
| `spread` | one CPU of each core, as near to each other; a second one of a core when all have one |

Whoever has CPUs keeps them: a larger floor adds what is next to them, a smaller one gives some back. Of places that are
as good the fullest is taken, then the highest numbers, so that the lowest core stays common for longest; one CPU always
does. CPUs that a kubelet's static policy gave to containers are left to those, and such a pod is left as it is.
`j10ce-qos doctor` and `j10ce-qos describe node NAME` tell which CPUs share what.
"""
MEMORY = """## Memory

Fields of a profile's section `memory`; a [strategy](node-strategy.md) may say them for some nodes, an annotation of a
[dialect](koordinator.md) for one workload. What is not said is left alone.

| field | unit, range | what it does |
|---|---|---|
| `minPercent`, `lowPercent` | % of the request | `memory.min`, `memory.low`; of a container its part of them |
| `throttlingPercent` | 0 to 100 | `memory.high` = request + (limit − request) · percent, in whole pages, never inside what is protected; of the workload, and of each container by its own request and limit. Without a limit: the node's memory. 0: none |
| `oomGroup` | true, false | `memory.oom.group` |
| `oomPriority` | −1000 to 1000 | `oom_score_adj` of every process = −`oomPriority`, also of those that come later: the lowest is killed first. 0 leaves them as they are. Above 0 a workload may ask for it in trusted namespaces only |
| `reclaim.enabled` | true, false | cold memory is taken back before anybody is short of it |
| `reclaim.targetPressure` | % of time, 0.1 unless said | how much it may be stalled for that |
| `watermarkPercent` | % of the limit | above it memory is taken back, down to 2 % of the limit below it. 0 or no limit: never |
| `pageCacheLimit` | % of the limit, or bytes | page cache above it is taken back. 0: no limit |
| `watermarkScale`, `watermarkAdjust`, `pageCacheSync`, `kernelPriority`, `kernelPriorityOom` | 1 to 1000; −25 to 50; 0 to 12 | `memory.wmark_scale_factor`, `memory.wmark_min_adj`, `memory.pagecache_limit.sync`, `memory.priority`, `memory.use_priority_oom`, on kernels that have them |

**Taking memory back** (controller `memory-reclaim`) needs `memory.reclaim`: cgroup v2 and Linux 5.19. Elsewhere nothing is
done, and `doctor` and `explain` say so. Every 4 s a step of (memory in use − what is protected) is asked for: 1 %, and twice
as much after each step that was not felt, up to 8 %. A step was felt when the workload was stalled for memory for more than
`targetPressure`, or when more than a tenth of the step (and 256 KiB) was read back since (refaults). Then comes a pause of
16 s, twice as long each time up to 512 s, and 1 % again; eight steps in a row that were not felt forget the pauses. The same
pause follows when nothing came of a step. So something cold is half as large after a minute, and something hot all over is
short of 1 % for a moment, less and less often. Where the kernel measures no pressure, refaults alone decide. Tier `system` and
what was promised (`memory.min` and every reservation) are never asked for; at most 8 workloads are at a time, the largest
first. `j10ce-qos hold NAME reclaim` stops it for one of them. Above `watermarkPercent` the steps are 8 % from the first on. Page
cache above its limit goes in one step; before Linux 6.9, which can leave anonymous memory alone, the kernel may
swap some out with it.

Kernels with `memory.wmark_ratio` or `memory.pagecache_limit.size` (Anolis OS, Alibaba Cloud Linux) get the numbers, and the
agent leaves it to them.
"""
SHORT = 40  # letters of a text that stands in the table itself


def main() -> int:
    lines = [HEAD, *matrix(builtin()), "", WHOLE_CPUS, MEMORY, *knobs()]
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
