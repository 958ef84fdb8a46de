"""How settings of parents and children fit each other.

The board comes in; decided values are raised or cut, each with its reason.

    guarantee   makes parents cover memory.min and memory.low of their children
    quota       makes CPU settings fit each other
    cpuset      makes CPU sets nest
"""
