"""How the agent talks with the control plane, be it a manager or Kubernetes.

Node documents come in; reports and local holds go out. A control plane that is away changes nothing.

    servers     chooses one of several managers, and how long to wait
    enrolment   gets this node its token, and renews it
    hold_push   tells holds of this host, each once
    sync        watches the document and pushes the report
    kube_sync   is the same as sync on Kubernetes
    daemonset   says whether this agent is replaced or removed
    kube_node   puts the parts on Kubernetes together
"""
