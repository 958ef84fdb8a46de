"""Who is on a node and around it already, and whom a pod wants beside it, or far away.

Pods come and go in the book; counts by row follow them, so that a question costs one pass over the rows.

    ports       NodePorts: are the ports of the node that a pod asks for free?
    counts      counts pods by row that somebody asks about, as they come and go
    wishes      counts what the pods that are there wish for themselves, by row
    spread      PodTopologySpread: pods of a kind evenly over zones and nodes
    defaults    is how pods are spread that do not say how
    inter_pod   InterPodAffinity: beside these, far from those, and what those who are there wish of newcomers
"""
