"""Processes of a measurement: the service, who competes with it, and how they are started and ended.

All end with whoever started them, and wait at a gate until they are where they belong.

    gated        starts them, waits until they are ready, and lets them go together
    service      is the load: open loop, latency from the due time
    requests     is what one of its requests does
    redis        is a real server that it may ask
    far          is who answers at the other end of a link
    antagonist   is who competes with it
    mortal       keeps processes from outliving who started them
"""
