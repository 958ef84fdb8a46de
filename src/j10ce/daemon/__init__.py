"""What every long-running process of ours needs, whatever it does.

Paths, numbers and plain data come in; files, waits and log lines go out. Nothing here knows an object of the API.

    clock          reads the two clocks of a process
    logs           sets up log lines for a terminal or journald
    strays         logs unknown fields, each once
    notify         tells systemd that we are ready or alive
    lock           keeps a second agent, or a second `up`, off this host
    descriptors    lets a process have as many files and connections open as it may
    options        are what is typed behind its name
    config_file    reads a file that an administrator keeps, as plain data
    secret_files   writes a file that only its owner may read, whole or not at all
    bell           wakes those who wait for a change
    pace           lets long work leave others their turn on the event loop
"""
