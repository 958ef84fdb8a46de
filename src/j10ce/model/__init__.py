"""The nouns every stage shares. Frozen data and pure functions: no I/O, no clock."""
