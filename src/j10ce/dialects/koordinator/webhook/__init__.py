"""What koord-manager's webhooks make of a pod.

A pod as JSON, profiles and priority classes come in; the pod as it should be, or reasons to refuse it, go out.

    pods        reads a pod as far as the rules need it
    profile     is a ClusterColocationProfile, and which pods it is for
    patch       merges a patch into a pod, as Kubernetes does
    resources   rewrites amounts to those of batch and mid
    mutate      applies profiles to a pod that is created
    required    reads which labels a cluster requires, and says which a pod lacks
    validate    says why a pod is refused, and what is odd about one that is not
"""
