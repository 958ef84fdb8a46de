"""`host-application-config`: what runs on a node outside of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.config.fields import Class, Map, Plain, Priority
from j10ce.errors import Finding
from j10ce.model.bounds import Several, Word
from j10ce.model.parts.strict import Strict

CgroupBase = Literal["CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort"]


class CgroupPath(Strict, frozen=True, kw_only=True):
    """Base / parentDir / relativePath."""

    base: CgroupBase = "CgroupRoot"
    parent_dir: Word = ""
    relative_path: Word = ""

    @property
    def below_base(self) -> str:
        return "/".join(part.strip("/") for part in (self.parent_dir, self.relative_path) if part.strip("/"))


class TheirApplication(Strict, frozen=True, kw_only=True):
    name: Word
    priority: Priority | Literal[""] = ""
    qos: Class | Literal[""] = ""
    cgroup_path: CgroupPath = CgroupPath()
    strategy: Map | UnsetType = UNSET  # nothing is defined in it

    @property
    def suppressible(self) -> bool:
        """Only what is best effort by class and by place gives way."""
        return self.qos == "BE" and self.cgroup_path.base == "KubepodsBesteffort"


class HostApplications(Strict, frozen=True, kw_only=True):
    applications: Several[TheirApplication] | UnsetType = UNSET


DEFAULTS: Final[Plain] = {"applications": []}


def findings(strategy: HostApplications) -> Iterator[Finding]:
    seen: set[str] = set()
    for n, app in enumerate(strategy.applications if strategy.applications is not UNSET else ()):
        path = f"applications[{n}]"
        if not app.name or app.name in seen:
            yield Finding(f"{path}.name", app.name, "no name of its own", "give each application another name")
        seen.add(app.name)
        steps = app.cgroup_path.below_base.split("/")
        if not app.cgroup_path.below_base or ".." in steps or "." in steps or "\0" in app.cgroup_path.below_base:
            base = app.cgroup_path.below_base
            yield Finding(f"{path}.cgroupPath", base, "not the path of a cgroup", "name one below its base, without ..")
