"""What controllers of CPU time are made of."""
