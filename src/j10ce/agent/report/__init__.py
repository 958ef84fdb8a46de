"""What this node says of itself.

The ring's last Report comes in; the status of the node, metrics and usage go out.

    reservations      says what the ledger of this node holds
    report            is the status of the node, and names objects that ask for what it could not do
    size              makes a report fit
    peaks             says what peak to expect of each workload
    zones             says what is bound to each memory node
    usage             says what workloads use, for the overcommit of this node
    traffic           says how links are divided now
    applied_changes   says which request of the control plane was carried out
    metrics           counts for Prometheus
    exposition        keeps counters and gauges, and spells them
    koordlet          says what koordlet's dashboards ask for, by its names
"""
