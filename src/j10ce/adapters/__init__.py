"""Where workloads come from: local commands and adopted cgroups (static), systemd units."""
