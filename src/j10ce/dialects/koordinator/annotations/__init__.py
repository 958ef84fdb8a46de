"""What pods and nodes say about themselves. A word that is wrong is reported; the pod runs as if it were not there.

Annotations come in; typed wishes and findings go out.

    texts   reads lists, numbers and CPU lists
    pod     is what a pod asks for
    node    is what a node says about itself
"""
