"""Evictions that agents ask for, carried out: the leader alone has the right to.

Requests of NodeQoS reports come in; Evictions to the API server and events of pods go out.

    queue     says which request is due: so many a minute of one node, later and later where a budget does not allow it
    evictor   checks requests, asks the API server, tells the pods
"""
