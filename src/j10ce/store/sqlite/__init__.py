"""The embedded durable store.

Writes come in; they are answered when the disk has acknowledged them.

    database   is the file: creation, checks, loading, transactions
    writer     is the one thread that writes
    store      decides writes on the event loop, and serves reads from memory
"""
