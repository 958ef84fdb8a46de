"""What the kernel tells of CPUs that share something, and what becomes of files that are missing."""

from __future__ import annotations

from pathlib import Path

from j10ce.host.topology import of_this_machine, topology
from j10ce.model.machine.topology import Site

CPUS = frozenset({0, 1, 2, 3})


def put(root: Path, path: str, text: str) -> None:
    (root / "sys/devices/system" / path).parent.mkdir(parents=True, exist_ok=True)
    (root / "sys/devices/system" / path).write_text(f"{text}\n")


def machine(root: Path) -> Path:
    """Two sockets of one core each; every core has two CPUs and a cache of its own."""
    for cpu in CPUS:
        socket = cpu % 2
        put(root, f"cpu/cpu{cpu}/topology/core_cpus_list", f"{socket},{socket + 2}")
        put(root, f"cpu/cpu{cpu}/topology/physical_package_id", str(socket))
        put(root, f"cpu/cpu{cpu}/cache/index3/level", "3")
        put(root, f"cpu/cpu{cpu}/cache/index3/id", str(socket + 6))
        put(root, f"cpu/cpu{cpu}/cache/index3/shared_cpu_list", f"{socket},{socket + 2}")
    put(root, "node/online", "0-1")
    put(root, "node/node0/cpulist", "0,2")
    put(root, "node/node1/cpulist", "1,3")
    return root


def test_cores_caches_nodes_and_sockets_are_read(tmp_path: Path) -> None:
    read = topology(CPUS, str(machine(tmp_path)))
    assert read.sites == {cpu: Site(cpu % 2, cpu % 2, cpu % 2, cpu % 2 + 6) for cpu in CPUS}


def test_a_sandbox_that_hides_all_of_it_has_cpus_that_share_no_core(tmp_path: Path) -> None:
    assert topology(CPUS, str(tmp_path)).sites == {cpu: Site(cpu) for cpu in CPUS}


def test_a_kernel_before_5_3_names_siblings_otherwise(tmp_path: Path) -> None:
    root = machine(tmp_path)
    here = root / "sys/devices/system/cpu/cpu2/topology"
    (here / "core_cpus_list").rename(here / "thread_siblings_list")
    assert topology(CPUS, str(root)).siblings(2) == {0, 2}


def test_a_cache_without_an_id_is_known_by_its_lowest_cpu(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for cpu in CPUS:
        (root / f"sys/devices/system/cpu/cpu{cpu}/cache/index3/id").unlink()
    assert topology(CPUS, str(root)).by_l3(CPUS) == {0: {0, 2}, 1: {1, 3}}


def test_without_a_third_level_the_socket_is_what_shares(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for cpu in CPUS:
        put(root, f"cpu/cpu{cpu}/cache/index3/level", "2")
    assert topology(CPUS, str(root)).by_l3(CPUS) == {0: {0, 2}, 1: {1, 3}}


def test_what_makes_no_sense_is_taken_as_missing(tmp_path: Path) -> None:
    root = machine(tmp_path)
    put(root, "cpu/cpu0/topology/core_cpus_list", "all of them")
    put(root, "cpu/cpu0/topology/physical_package_id", "-1")
    assert topology(frozenset({0}), str(root)).site(0) == Site(0, 0, 0, 6)


def test_this_machine_has_a_topology() -> None:
    here = of_this_machine()
    assert here.cpus
    assert all(cpu in here.siblings(cpu) for cpu in here.cpus)


def test_memory_of_each_node_is_read_where_the_kernel_says_it(tmp_path: Path) -> None:
    root = machine(tmp_path)
    put(root, "node/node0/meminfo", "Node 0 MemTotal:       16 kB\nNode 0 MemFree:        8 kB")
    put(root, "node/node1/meminfo", "nonsense")
    assert topology(CPUS, str(root)).memory == {0: 16384}
