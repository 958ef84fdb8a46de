"""How well pods are served: clocks of pods, sums of their owners, and how far each is from its SLO. Pure.

An owner's sums are its *account*. Every update and every question costs the same however long a history is: what has
ended is folded into sums, and what goes on is linear in time.

    identity    says whose account a pod is on, what its SLO is, and how it is measured
    clock       is the clock of one pod: created, bound, running, ended
    flow        sums of intervals, those that go on included
    online      sums of an owner that needs all its pods at a time
    measure     makes sums an availability, and the seconds to its violation
    account     is the account of one owner, with its slots
    accounts    are all of them, kept by events of pods and owners
    history     is what of them is written down, to be read after a restart
    duration    is how durations are spelled
    table       shows accounts to people: the debug page
    line        is what is logged of a pod that has left its slot
"""
