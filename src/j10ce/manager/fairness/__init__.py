"""How much a caller may use, so that something is left for everybody else.

Callers, connections and the time and bytes of requests come in; leave to go on, a wait or a refusal goes out.

    rate_limits   counts requests and what they cost, by class of caller
    parts         finds who has used more than an equal part
    metered       measures how long a request keeps the event loop
    desks         lets few requests of a caller be worked on together once their bodies are there
    large         lets few large requests be read together
    growth        reckons what a write adds to the store
    lines         bounds the large lines of watches that are on their way
    crowd         counts the connections of strangers and of each caller
    handshakes    counts TLS connections from when they are accepted
"""
