"""j10ce — quality of service for Linux workloads.

model/     the nouns every stage shares                (pure)
policy/    who is entitled to what                     (pure)
control/   what should change now, and why             (pure)
plan/      one agreed, ordered, explained set of writes (pure)
kernel/    the only code that changes the machine
observe/   the only code that samples it
agent/     the loop that joins them on one host
manager/   the control plane: objects in, node documents out
store/     where objects live: memory, SQLite
adapters/  where workloads come from
cli/       what a person types
"""

__version__ = "0.1.0"
