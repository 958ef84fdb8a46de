"""Who suffers from whom, and the mildest remedy that helps.

A Snapshot comes in; accusations with their evidence go out, and caps on antagonists where the strategy lets us act.

    symptoms       says what suffering is, and when a workload suffers
    correlation    compares series of numbers by their ranks
    detector       names the antagonists of one victim
    trial          tries a cap, keeps what helps and undoes what does not
    interference   is the controller
"""
