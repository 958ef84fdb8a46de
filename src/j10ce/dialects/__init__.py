"""Other systems' words for quality of service, read and understood. Pure: no file, no clock, no network.

Their labels, annotations and configuration come in; our nouns, their laws' numbers, and findings go out.

    koordinator/   is Koordinator: classes, strategies, annotations, laws, webhooks
"""
