"""What the leader alone does, for as long as it leads.

Objects and the passing of time come in; writes to the store go out.

    run               starts every keeper, and starts it again when it fails
    nodes             says which nodes have fallen silent
    expiry            ends temporary objects
    orphans           removes objects whose owners are gone
    overcommit_file   reads how much of which nodes may be lent
    overcommit        keeps the amounts that each node may lend
    traces            ends the trace of a request where a node has carried it out
"""
