"""Pods by their SLOs: who is next, who has to go for whom, and who is not let in.

Importance is the SLO; sums and metrics come from accounts.

    settings   are the arguments of the plugin
    laxity     is the law of lazy mode: how long a pod can still wait
    prospects  says on which nodes lazy mode looks for who can wait
    budget     is how often pods may be moved at all
    lazy       chooses whom lazy mode lets go
    admission  keeps out owners that there is no room for
    following  measures, whoever decides
    aware      is the plugin
"""
