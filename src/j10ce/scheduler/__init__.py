"""Decisions about the whole fleet: what fits where, and what is held for whom. Pure; NumPy allowed."""
