"""j10ce — quality of service for Linux workloads.

Policies and the state of machines come in; settings of the kernel go out, each with its reason.

    errors       is the tree of errors
    model/       the nouns every stage shares                (pure)
    policy/      who is entitled to what                     (pure)
    control/     what should change now, and why             (pure)
    plan/        one agreed, ordered, explained set of writes (pure)
    host/        the machine as it is, read only
    http/        HTTP as every process of ours speaks it
    daemon/      what every long-running process needs
    kube/        the client of a Kubernetes API server
    kernel/      the only code that changes the machine
    observe/     the only code that samples it
    store/       where objects live: memory, SQLite, etcd, Kubernetes
    adapters/    where workloads come from
    dialects/    other systems' words for quality of service (pure)
    scheduler/   decisions about the whole fleet             (pure)
    agent/       the loop that joins them on one host
    manager/     the control plane: objects in, node documents out
    bench/       what each profile protects, measured on this machine
    sim/         machines in memory, under the real loop
    cli/         what a person types
    testing/     fakes and conformance suites
"""

__version__ = "0.1.0"
