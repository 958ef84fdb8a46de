"""What fits beside what is there, and where it leaves the most, or the least, or an even rest.

Pods and the book's sums come in; masks and scores go out, by the integer arithmetic of Kubernetes.

    fit         is NodeResourcesFit: room for every resource that a pod asks for; its score is a strategy
    strategies  are LeastAllocated, MostAllocated, RequestedToCapacityRatio
    balanced    is NodeResourcesBalancedAllocation: resources run out together
    standing    is what profiles say of pods
    reserved    is Reservation: units of policies are kept for those whom they are for
    load        is LoadAware: away from machines that are expected to be busy
"""
