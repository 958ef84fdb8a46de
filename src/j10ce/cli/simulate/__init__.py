"""Clusters that are tried before they are touched.

Files, or a live cluster, come in; tables, JSON and pictures go out.

    sim       is the commands
    cluster   says what became of owners, in words
    live      asks an API server for nodes, owners and pods
"""
