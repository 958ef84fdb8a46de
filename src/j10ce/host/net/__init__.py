"""The network of this machine, read by netlink.

Messages of the kernel come in; links and queues go out.

    netlink  packs and unpacks messages, and carries them
    links    says which links there are, and notices when that changes
    ends     says which addresses are at the other end of one
    queues   reads the queues on them
    classes  says whose class is which in a tree of ours
    living   says whose cgroup is gone
    bpf      loads programs, and reads and writes their maps
    connections  says how TCP fares, and whose each connection is
"""
