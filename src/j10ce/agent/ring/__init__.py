"""When the ring runs, and with what."""
