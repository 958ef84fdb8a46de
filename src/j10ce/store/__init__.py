"""Where objects live. Every store passes one conformance suite (`j10ce.testing`).

Objects and expectations come in; stored objects, listings and events go out.

    store      is the seam that every store implements
    revise     says what a write makes of an object
    reading    reads what an older or a newer release has stored
    order      keeps keys sorted
    table      holds committed objects and their latest changes in memory, and watches them
    memory     is the store that lasts as long as its process
    sqlite/    is the embedded durable store
    etcd/      is the store of a fleet
    kube/      is the store of a Kubernetes cluster
    mirror     follows the objects of a kind: list, watch, and list again
    elector    says who leads: by a claim that has to be renewed, or always
    backup     carries all objects into a file and back
    schemes    says which store a URL means
"""
