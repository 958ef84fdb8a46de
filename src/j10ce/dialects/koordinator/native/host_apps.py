"""`host-application-config`: what runs beside all pods, by the path of its cgroup."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.classes import PROFILES, KoordClass
from j10ce.dialects.koordinator.config.host_apps import CgroupBase, HostApplications, TheirApplication
from j10ce.dialects.koordinator.native.words import slug
from j10ce.model.parts.strategy import HostApplication, Strategy

# As a kubelet with systemd as its driver names them, which nearly all have.
BASES: Final[dict[CgroupBase, str]] = {
    "CgroupRoot": "",
    "Kubepods": "kubepods.slice",
    "KubepodsBurstable": "kubepods.slice/kubepods-burstable.slice",
    "KubepodsBesteffort": "kubepods.slice/kubepods-besteffort.slice",
}
BAND_PREFIX: Final = "koord-"


def host_applications(their: HostApplications) -> Strategy:
    listed = their.applications if their.applications is not UNSET else ()
    return Strategy(host_applications=tuple(map(_application, listed)))


def _application(their: TheirApplication) -> HostApplication:
    place = their.cgroup_path
    steps = (BASES[place.base], place.below_base)
    return HostApplication(
        name=slug(their.name),
        cgroup="/".join(step for step in steps if step),
        profile=PROFILES[KoordClass(their.qos)].profile if their.qos else "",
        priority=_band(their.priority),
    )


def _band(priority: str) -> Any | UnsetType:
    return priority.removeprefix(BAND_PREFIX) or UNSET
