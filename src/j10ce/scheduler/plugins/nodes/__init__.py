"""What nodes say of themselves: whether they are open, their names, taints, labels and images.

Nodes and a pod's shape come in; masks and scores of rows go out, worked out once for all nodes that say the same.

    unschedulable   NodeUnschedulable: is it open?
    named           NodeName: is it the node that a pod names?
    taints          TaintToleration: does the pod bear its taints?
    affinity        NodeAffinity: are its labels those that a pod wants?
    images          ImageLocality: does it have the images already?
    volumes         VolumeBinding: can it reach the volumes of a pod, and is all known that decides it?
    scale           gives raw scores the range that Kubernetes gives them
"""
