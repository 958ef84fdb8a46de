"""Every kernel control, described once.

Nothing comes in; the table goes out.

    shapes   says what there is to say of one
    table    has a row for each
"""
