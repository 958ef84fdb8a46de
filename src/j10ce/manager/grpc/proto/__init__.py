"""The messages of our gRPC API, compiled from j10ce/v1alpha1/*.proto by tools/generate_proto.py."""
