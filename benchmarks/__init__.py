"""Measurements behind the numbers we state: `make bench`, each figure a ratio within one run where two are compared."""
