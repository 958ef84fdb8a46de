"""Classic mode: the published rules of QosAware, to the letter.

rules    are the order of the queue, and who may preempt whom
sheet    has the measures of all pods at once
toll     is what a node costs, and which one costs the least
node     looks at one node: whom would it take there?
many     looks at all nodes together of which nothing but sums counts
victims  chooses whom to let go
"""
