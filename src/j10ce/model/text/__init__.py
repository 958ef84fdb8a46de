"""Values as people read them.

Objects and numbers come in; words for listings, sentences and logs go out.

    words     puts numbers into sentences
    cells     shows values of objects in listings
    secrets   finds what looks like a credential
    near      finds what a mistyped word was meant to be
    items     remembers where the items of a list were, for findings
"""
