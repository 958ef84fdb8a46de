"""Parts of the measurement `network`."""
