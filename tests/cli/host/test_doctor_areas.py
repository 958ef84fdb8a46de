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
    assert "vda: for floors it needs `j10ce-qos calibrate /dev/vda`\n" in text
    assert "vda: write-back on /, /boot is charged to nobody" in text
    assert "disks" not in of_area({**REPORT, "disks": [vda]}, "network")


def test_the_disks_of_this_machine_need_no_agent() -> None:
    assert all(set(d) >= {"name", "floors", "needs"} for d in disks_here([]))


def test_a_disk_that_is_not_measured_needs_that_for_any_floor_and_more_for_weights() -> None:
    needs = ["`j10ce-qos calibrate /dev/vda`", "io.cost.model: cgroup v2 with io.cost"]
    vda = {"name": "vda", "number": "254:0", "capacity": "not measured", "managed": True, "floors": "none"}
    text = long_doctor({"capabilities": [], "disks": [vda | {"needs": needs, "uncharged": []}]})
    assert f"vda: for floors it needs {needs[0]}; for those by weight also {needs[1]}\n" in text
    measured = vda | {"floors": "caps on others", "needs": needs[1:], "uncharged": []}
    assert f"vda: for floors by weight it needs {needs[1]}\n" in long_doctor({"capabilities": [], "disks": [measured]})


def test_who_lacks_rights_is_told_what_rights_alone_may_bring() -> None:
    capabilities = [
        {"feature": "privileges", "ok": False, "needs": "root, or the cgroup tree of a user's systemd manager"},
        {"feature": "cpu.max", "ok": True, "via": "cgroup1"},
        {"feature": "net.egress", "ok": False, "needs": "the capabilities NET_ADMIN and SYS_ADMIN"},
        {"feature": "tasks", "ok": False, "needs": "CAP_SYS_PTRACE"},
        {"feature": "swap", "ok": False, "needs": "a swap device or file"},
    ]
    said = long_doctor({"capabilities": capabilities}).splitlines()[-1]
    assert said.endswith("; as root 1 of 5 features would be, and 3 more if rights are all that they need")
