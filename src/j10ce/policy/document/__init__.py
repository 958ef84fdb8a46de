"""The node document: all that an agent obeys.

Objects and a node come in; its document goes out, and the change since the one before.

    rollout    says which nodes have the present revision of a policy
    document   derives the document of one node
    change     says what differs between two documents
    unrecorded remembers generations that are not in the history yet
"""
