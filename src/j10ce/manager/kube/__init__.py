"""What the manager does in a Kubernetes cluster alone. `narrator` tells pods and nodes what their agents report."""
