"""Kubernetes' own objects, as far as we read them.

JSON of an API server or a kubelet comes in; small structs go out.

    native   is nodes, namespaces, leases and events
    pod      is a pod, and what it asks for as a whole
"""
