"""Traffic: what leaves by a link is queued for in a tree of classes, in which floors hold and what is unused is lent.

Rates of links, and floors and ceilings of workloads and shares come in; qdiscs, classes and a filter of HTB go out. The
kernel does the rest, packet by packet, whether an agent runs or not.

    estate   says which links and shares there are
    rates    is the back end of links: whether there is a tree, and how much passes
    traffic  is the back end of workloads and shares: their classes
    trees    knows the trees of all links, and hears when somebody else changes one
    tree     is one of them, found or built
    ingress  sends what comes in through a link of ours that has a tree
    director is the program that does so
    foreign  is what others have set up, kept and put back
    doors/   know what comes out of a network of somebody's own
    htb      spells classes for the kernel
    program  finds the class of a packet by the cgroup of its socket
    probation  gives a link back what it had, unless traffic passes
    probe    says whether this kernel and this process can do all that
"""
