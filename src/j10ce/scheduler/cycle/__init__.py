"""One decision after another: which pod is next, which node it gets, and who has to go for it. Pure.

Events and `now` come in; bindings, evictions, nominations and waits go out. Process, simulator, `place` and extender
drive the same code:

    scheduler = Scheduler([profile("default-scheduler", plugins, weights)])
    scheduler.put_node(node, now)        remove_node(name, now)
    scheduler.put_pod(pod, now)          remove_pod(uid, now)       every pod of the cluster, whoever schedules it
    scheduler.put_fact(fact, now)        remove_fact(fact, now)     owners, namespaces, budgets, pledges, quotas …
    for decision in scheduler.step(now): ...                        all pods that are due, or as many as `most`
    scheduler.bound(uid, now)            bind_failed(uid, why, now)       evict_failed(uid, why, now)
    scheduler.next_at(now)               when to step again if nothing happens; infinite: never
    scheduler.pending()                  every pod that has no node yet, and why

    framework   is what plugins are asked and answer: the extension points
    decisions   is what a step decides, for a driver to carry out
    profile     is an ordered set of plugins with weights
    outlook     is how pods of one shape stand with every node, kept from one of them to the next
    ladder      tells where many equal pods go
    refusals    counts why no node will do
    nominated   knows the pods for which others had to go
    engine      chooses a node
    queue       knows who is next, and who waits for what
    placing     leads a pod from the choice of a node to its binding, and back
    scheduler   joins them: events in, decisions out
"""
