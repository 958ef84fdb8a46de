"""Terway's words for the network: the class of a pod, its rates in bytes a second, and the files of a node.

Annotations and texts of files come in; overrides of workloads, and NodeStrategies, go out.

    files   reads global_bps_config and pod.json
    native  says in our own words what they say, and what it could not
    pods    understands the annotations of a pod
"""
