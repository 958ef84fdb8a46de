"""What the manager tells of itself to those who run it.

Requests, writes and failures come in; metrics, spans and answers of health probes go out.

    metrics          counts for Prometheus
    trace            is the seam of tracing
    otel             sends spans to a collector
    observed_store   is a store that measures another one
    health           says whether this manager can do its work
"""
