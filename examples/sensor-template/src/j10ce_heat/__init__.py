"""How hot the machine is: `node.temperature`, in degrees Celsius, of its hottest zone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from j10ce.model.knob import NODE
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample


class Heat:
    name = "heat"

    def __init__(self, thermal: Path = Path("/sys/class/thermal")) -> None:
        self._thermal = thermal

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        """Nothing where the machine tells no temperature. Called every second by the ring: read little."""
        zones = [int(text) for zone in self._thermal.glob("thermal_zone*/temp") if (text := _read(zone))]
        if zones:
            yield Sample(NODE, "node.temperature", max(zones) / 1000)


def _read(file: Path) -> str:
    """Empty where a zone cannot be read: some say so with an error while they sleep."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
