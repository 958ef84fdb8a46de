"""Koordinator's world as pure functions.

Pods, nodes and the ConfigMap of a cluster that runs Koordinator come in; classes, effective strategies, mutated pods,
and findings go out. Units are in names: `milli` is thousandths of a CPU, memory is bytes.

    names          are the labels, annotations and resources that it knows
    reading        reads JSON that others wrote, strictly
    classes        says which class and priority a pod has, and which profile of ours that is
    gates          says which controllers of ours its feature gates switch off
    memory         says what memoryQOS means beyond its percentages
    overrides      says what a pod's labels and annotations change of what it gets
    config/        is the ConfigMap: keys, defaults, layers, what is refused
    annotations/   are what pods and nodes say about themselves
    native/        is the ConfigMap as NodeStrategies of ours
    webhook/       is what its webhooks make of a pod
"""
