"""Who is entitled to what. Pure: no file, no clock, no network.

Objects and workloads come in; entitlements and findings go out.

    select         matches labels as Kubernetes does
    profiles       are the profiles that are there from the start
    payer          says who is charged for a workload
    lifetime       says when a policy ends, and which of its generations is in force
    reach          says how far a Hold reaches
    predict        says which peak to expect of a series
    strategy       says what all strategies together say of a node
    equipment      says what links and disks of a node are worth
    overcommit     says how much of a node may be lent
    choose         says which profile a workload runs under
    validation/    says what is wrong with an object
    document/      gathers the objects that concern one node
    entitlement/   says what each workload is promised
    pods           says what a pod may ask for
    effect/        says what promises are worth in the kernel
"""
