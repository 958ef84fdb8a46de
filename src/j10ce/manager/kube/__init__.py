"""What only a manager in a Kubernetes cluster does.

Pods, nodes and questions of kube-scheduler and of API servers come in; answers, events and certificates go out.

    doors            are the ways in for Kubernetes' callers, through the gate of the API
    metrics          counts what Kubernetes asks
    cluster_feed     follows pods, nodes and policies into the book that the extender reads
    extender         answers kube-scheduler
    webhook          answers API servers before they store something, and judges pods
    roster           says which nodes the fleet has, and how full they are
    nodes            writes what may be lent on each node
    narrator         tells pods and nodes what their agents report
    evictions/       carries out the evictions that agents ask for
    leader_address   leads the extender's Service to the leader
    certificates     makes certificates and says when they change
    koordinator/     obeys Koordinator's ConfigMap, and answers for its webhooks
    webhook_certs    keeps them in a Secret, and tells the API server
"""
