"""The ConfigMap `slo-controller-config`: every key, its defaults, its layers, and what is refused.

Texts of a ConfigMap and the labels and annotations of a node come in; strategies whose every field knows its layer, and
findings, go out.

    fields       are the kinds of numbers that strategies are written in
    colocation   is `colocation-config`
    threshold    is `resource-threshold-config`
    qos          is `resource-qos-config`
    qos_rules    say what `resource-qos-config` may not say
    burst        is `cpu-burst-config`
    system       is `system-config`
    host_apps    is `host-application-config`
    ratios       are `cpu-normalization-config` and `resource-amplification-config`
    keys         is the table of keys; reads them, and keeps the last good value of each
    layers       says what holds on one node, and which layer said so
    conflicts    is the webhook: selectors that overlap, nodes that two entries want
"""
