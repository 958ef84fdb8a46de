"""The only code that changes the machine: every write is journalled, ordered, read back and undoable."""
