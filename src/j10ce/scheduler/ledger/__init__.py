"""The book of reservations of a fleet.

Nodes as they report themselves and policies come in; pledges with a node for each unit go out, or refusals in numbers.

    pledge     is what the ledger works with
    witness    packs equal units onto nodes
    exact      is the bounded exact search behind first-fit
    layout     is the present state, and the moves between states
    settle     follows what happens: nodes shrink, vanish and come back
    shortage   says what is missing where, and who holds it
    lending    says which unused units best effort may stand on
    fleet      is the ledger itself
"""
