"""What stood before us, what we made of it, and who else writes.

Writes and what was read back come in; lines of the journal go out, and the way back.

    entry      is a line of the journal
    journal    keeps the lines
    coupling   knows settings that the kernel changes by itself
    held       keeps the last value that was read of every setting
    drift      notices who else writes, and yields
    tending    looks after newcomers where many hold one value
    undo       gives everything back
"""
