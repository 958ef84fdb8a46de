"""Classic mode of QosAware: the published rules, to the letter.

Nodes are looked at one by one, or all together where that says the same.

    rules      are the order of the queue, and who may preempt whom
    standing   is how a pod stands beside others
    sheet      has what the measures of all pods are made of
    measures   reckons them all at once
    toll       is what a node costs, and which one costs the least
    node       looks at one node: whom would it take there?
    many       looks at all nodes together of which nothing but sums counts
    victims    chooses whom to let go
"""
