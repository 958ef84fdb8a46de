"""A cluster of Kubernetes, followed into the core.

Objects of an API server come in; facts go out, and nothing of the objects is kept.

    promises   makes facts of policies, profiles and reports of nodes
    kinds      is what is read of an API server, and what is kept of it
    faults     tells pods what is wrong in their annotations
    feed       follows all of it
"""
