"""Who may do what and how much of it, and who hears of it.

In reading order: `own_writes` (the store as the leader's keepers get it: the audit log hears of what they write),
`metered` (the time that a request takes from the event loop), `parts` (who has more of that than others), `desks` (of
one caller, how many are worked on together), `growth` (the bytes that a write adds to the store), `lines` (large lines
of watches), `crowd` (the connections of strangers and of each caller), `handshakes` (TLS connections, counted from the
beginning).
"""
