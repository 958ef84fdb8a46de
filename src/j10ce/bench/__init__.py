"""What a user runs to see the protection on their own machine: `j10ce-qos prove`.

A scenario and the machine come in; a service is measured in turns alone, without QoS, as others protect it and under
profiles of ours; a verdict with figures goes out, and nothing of it stays on the machine.

    run          is the whole: rounds in which every arm has its turn
    scenarios    is the table of what can be proved, and of the arms
    measure      is one arm in one round
    layouts/     puts the processes of an arm where they belong
    stages/      is what a scenario is played on beside CPUs: a link, a disk, a box of memory
    crowd/       is their processes: the load, and who competes with it
    scratch      knows what a run leaves on the machine while it lasts
    janitor      takes it away, however the run ended
    machine      reads what has been used
    taken        holds the nouns
    figures      makes percentiles, ratios with intervals and isolation of latencies
    verdict      judges: a line for each arm, and whether the machine was quiet enough
    report/      shows it
"""
