"""What every client of a Kubernetes cluster shares: `exec_credential` runs the plugins that kubeconfig files name."""
