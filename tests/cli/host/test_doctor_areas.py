"""`doctor network`: what concerns an area, and nothing else."""

from __future__ import annotations

from typing import Any

from j10ce.cli.host.doctor import disks_here, long_doctor, of_area

REPORT: dict[str, Any] = {
    "capabilities": [
        {"feature": "privileges", "ok": True, "via": "uid 0"},
        {"feature": "cpu.max", "ok": True, "via": "cgroup1"},
        {"feature": "link.egress.rate", "ok": True, "via": "htb"},
        {"feature": "io.max.rbps", "ok": False, "needs": "the io controller"},
    ],
    "links": [
        {"name": "eth0", "kind": "device", "capacity": "1Gbit by its own speed", "managed": True, "divided": "no"}
    ],
}


def test_an_area_has_its_features_and_the_network_its_links() -> None:
    text = long_doctor(of_area(REPORT, "network"))
    assert "link.egress.rate" in text
    assert "1Gbit by its own speed" in text
    assert "cpu.max" not in text
    assert [c["feature"] for c in of_area(REPORT, "disk")["capabilities"]] == ["io.max.rbps", "privileges"]
    assert "links" not in of_area(REPORT, "cpu")


def test_without_an_agent_the_links_are_said_to_be_unknown() -> None:
    text = long_doctor(of_area({"capabilities": REPORT["capabilities"]}, "network"))
    assert "an agent's to know" in text


def test_disks_are_shown_with_what_they_lack() -> None:
    vda = {
        "name": "vda", "number": "254:0", "capacity": "not measured", "managed": True, "floors": "none",
        "needs": ["`j10ce-qos calibrate /dev/vda`"], "uncharged": ["/", "/boot"],
    }  # fmt: skip
    text = long_doctor(of_area({**REPORT, "disks": [vda]}, "disk"))
    assert "vda: for floors by weight it needs `j10ce-qos calibrate /dev/vda`" in text
    assert "vda: write-back on /, /boot is charged to nobody" in text
    assert "disks" not in of_area({**REPORT, "disks": [vda]}, "network")


def test_the_disks_of_this_machine_need_no_agent() -> None:
    assert all(set(d) >= {"name", "floors", "needs"} for d in disks_here([]))
