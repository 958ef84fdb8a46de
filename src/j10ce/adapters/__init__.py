"""Where workloads come from: local commands, adopted cgroups and units, and the pods of this node.

Requests, cgroups and pods come in; workloads that begin, change and end go out.

    adapter                is the seam to every environment
    static                 is local commands, adopted cgroups and units
    kubernetes_cgroups     finds pods and containers in the cgroup tree
    kubernetes_workload    makes a workload of a pod
    kubernetes             joins both: the pods of this node
"""
