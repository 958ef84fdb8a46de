"""One agreed, ordered and explained set of writes. Pure: the same proposals and snapshot give the same plan.

merge      the wishes for one setting become one value
hold       an operator's freeze, and when it would cut a floor
rights     what may be changed at all, and the floors inside each group
board      the tree as it would be after the plan
guarantee, quota, placement   make parents cover and children fit
structure  cgroups to make, enable, join and remove
order      so that the tree is valid after every write
explain    why a setting has its value
"""
