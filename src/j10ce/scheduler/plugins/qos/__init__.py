"""Pods by their SLOs: who is next, who has to go for whom, and who is not let in.

Importance is the SLO; sums and metrics come from accounts.

    rules      are those of classic mode: the order of the queue, and who may preempt whom
"""
