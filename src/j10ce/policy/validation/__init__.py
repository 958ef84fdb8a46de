"""What can be wrong with an object beyond its shape.

An object comes in; findings go out: where, which value, and what is allowed.

    syntax       is the spelling of names, labels, selectors and targets
    sections     is what the sections of a profile may say
    strategy     is what a strategy may say of nodes
    credential   is what a Credential may say
    reported     is what a node may say of itself
    validate     asks all of them
"""
