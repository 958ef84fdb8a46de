"""How the agent talks with the control plane, be it a manager or Kubernetes.

Node documents come in; reports and local holds go out. A control plane that is away changes nothing.

    servers     chooses one of several managers, and how long to wait
    enrolment   gets this node its token, and renews it
    hold_push   sends holds of this host, each once
    reporter    says what node and control plane are to each other, and pushes the report and the holds
    node        is this node as the control plane sees it
    sync        watches the document of a manager
    kube_sync   watches our kinds on Kubernetes, and renders the document
    daemonset   says whether this agent is replaced or removed
    kube_node   puts the parts on Kubernetes together
"""
