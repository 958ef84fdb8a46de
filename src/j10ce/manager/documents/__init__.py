"""The objects that the manager decides from, and what each node obeys because of them.

Events of the store come in; node documents and their changes go out.

    silence         knows how long nodes have been silent
    fragments       are the pieces that documents are joined from
    documents       keeps the document of every node
    size            bounds how large documents may become
    view            keeps the objects current, and wakes who waits for a change
    fleet_metrics   counts the fleet when somebody asks
"""
