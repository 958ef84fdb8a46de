"""What a scheduler reads of Kubernetes' objects: JSON of an API server comes in, facts go out.

A part that cannot be read is named in the facts, and never stops the rest: a pod of which something was not understood
is not placed by what is left of it.

    terms    is selectors, affinities, tolerations and spreading
    shapes   is what decides where a pod may run, shared by all pods that ask alike
    pods     is a pod
    owners   is the objects at the top of pods' owners
    others   is nodes, namespaces, budgets, volumes, groups and quotas
"""
