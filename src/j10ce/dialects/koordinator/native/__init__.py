"""The ConfigMap in our own words: NodeStrategies that say on every node what its layers say there.

Keys as they were accepted, and what nodes say about themselves, come in; NodeStrategies, and findings about what no
field of ours can say, go out.

    words        are names and labels of what is made
    sections     are thresholds, bursts, sysctls, lending and normalisation, key by key
    profiles     is `resource-qos-config`, as what differs from our profiles
    host_apps    is `host-application-config`
    translate    is the table of keys: one strategy of theirs as one of ours, within our ranges
    unheeded     says which fields have no equivalent
    selectors    takes the nodes of one selector out of another
    stacking     lays layers over each other so that only the first that selects a node is heard
    node_layers  are what single nodes say about themselves
    strategies   is all of it: from a ConfigMap to objects
"""
