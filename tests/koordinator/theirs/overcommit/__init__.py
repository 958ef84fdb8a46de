"""What koord-manager lends of a node, and what koordlet predicts, literally.

Capacities, uses and requests come in, thousandths of a CPU or bytes; amounts go out.

    samples     are percentiles and averages of what was measured
    histogram   is a history in buckets, in which the past counts less and less
    predictor   says how much of what prod asked for it will not use
    batch       is what is lent to batch, of the node and of each NUMA zone
    mid         is what is lent to mid; when an amount is reported, and when it is taken back
"""
