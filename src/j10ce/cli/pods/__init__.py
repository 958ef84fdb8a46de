"""What people ask about a pod of Kubernetes.

A name comes in; what it was promised, what it gets, and why it runs where it does go out.

    scheduled   is its way to a node: why it waits, who had to go for it, or for whom it had to go
    pod         explains it: profile, promises, what its node's agent says
"""
