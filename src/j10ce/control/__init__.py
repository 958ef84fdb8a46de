"""What should change now, and why. Pure: a controller reads a Snapshot and returns Proposals."""
