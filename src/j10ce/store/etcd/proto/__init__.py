"""etcd's messages, compiled from j10ce/etcd/v3/etcd.proto by tools/generate_proto.py."""
