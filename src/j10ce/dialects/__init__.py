"""Other systems' words for quality of service, read and understood. Pure: no file, no clock, no network.

Their labels, annotations and configuration come in; our nouns and findings go out.

    bandwidth      is Kubernetes: two annotations of a pod
    terway/        is Terway: classes and rates of the network, files of a node
    koordinator/   is Koordinator: classes, strategies, annotations, webhooks
"""
