"""How HTTP is read and answered, whatever it is about.

ASGI requests come in; checked parts of them, answers and Status objects go out.

    requests    reads options, headers and bodies, and writes JSON
    beside      does long work in a thread, callers in turn
    status      turns errors into HTTP codes and Status objects
"""
