"""What runs where, in arrays: one row per node, kept by events.

Nodes and pods come in as they change; sums per node and resource go out, and what moved since a version.

    shape       is what decides where a pod may run; equal shapes are decided alike
    facts       is what a scheduler knows of a pod and of a node
    selecting   is what selectors of labels choose
    around      is what else a cluster holds: namespaces, budgets, volumes, groups, quotas
    columns     numbers the resources that pods ask for
    index       is what nodes have in common
    absent      keeps pods of nodes that nobody has heard of
    book        is the book itself: pods that are bound, and pods that are assumed to be
    units       is who stands on units of policies, and what the others hold
    pledged     is what of a policy is in force
    suiting     is which nodes suit a shape by their labels, names and taints
"""
