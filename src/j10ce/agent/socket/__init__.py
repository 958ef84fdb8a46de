"""What people, hooks and the command line ask of a running agent."""
