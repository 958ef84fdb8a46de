"""One agreed, ordered and explained set of writes. Pure: the same proposals and snapshot give the same plan.

Proposals and a Snapshot come in; a Plan goes out, and the reason for every value.

    merge        makes one value of the wishes for one setting
    rights       says what may be changed at all, and the floors inside each group
    wishes       keeps proposals by setting, so that only what changed is looked at again
    board        is the tree as it would be after the plan
    hold         is an operator's freeze, and when it would cut a floor
    advice       is heard as far as every floor stays as good as without it
    fit/         makes parents cover and children fit
    structure    is cgroups to make, enable, join and remove
    difference   is what the kernel does not hold yet
    order        keeps the tree valid after every write
    arbiter      takes all of these steps
    actions      says which deeds are done: reclaims, evictions, kills
    explanation/ says why a setting has its value, and shows it
"""
