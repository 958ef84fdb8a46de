"""The store of a fleet, on etcd v3.

Writes come in and go out in batches; one watch over all kinds fills a table that serves reads.

    proto/    holds etcd's messages, and the code made of them
    address   reads the URL
    wire      says how objects lie in etcd
    gateway   calls etcd, whichever endpoint answers
    feed      keeps a table current by one watch
    writer    puts writes that wait together into one transaction
    upkeep    keeps etcd small, and says how full it is
    elector   is leadership by a lease
    store     puts these together
"""
