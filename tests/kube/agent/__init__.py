"""A package for pytest, which ends fixtures of that scope with it."""
