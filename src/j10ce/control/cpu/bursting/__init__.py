"""What a workload with a CPU limit may use beyond it: time that it saved up, and a quota that rises while it throttles.

Limits, throttling and the use of the shared CPUs come in; quotas above limits go out.

    pool     says how busy the CPUs are that nobody has for itself
    tokens   are what a raised quota costs
    quota    says what the next quota is
    burst    is the controller
"""
