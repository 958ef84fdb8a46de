"""Kubernetes' own objects, as far as we read them.

JSON of an API server or a kubelet comes in; small structs go out.

    native         is nodes, namespaces, leases and events
    pod            is a pod, and what it asks for as a whole
    placing        is the parts of a pod that say where it wants to run
    wide_pod       is a pod with all that decides where it may run
    surroundings   is what a scheduler reads beside pods
"""
