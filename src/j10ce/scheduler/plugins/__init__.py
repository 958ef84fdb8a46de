"""What a scheduler looks at, one opinion at a time.

A plugin answers the questions of `cycle/framework`, and knows no room of plugins but its own; classic mode is a room
below that of QosAware, and thinks pods away as preemption by priority does.

    classic/     has the published rules of QosAware
    qos/         orders and moves pods by their SLOs
    resources/   is about what fits beside what is there
    nodes/       is about what nodes say of themselves
    neighbours/  is about who is on a node and around it already
    queueing/    is about who is next, who waits, and who has to go for whom
"""
