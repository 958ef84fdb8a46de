"""What every long-running process of ours needs, whatever it does.

Paths, numbers and plain data come in; files, waits and log lines go out. Nothing here knows an object of the API.

    config_file    reads a file that an administrator keeps, as plain data
    secret_files   writes a file that only its owner may read, whole or not at all
    pace           lets long work leave others their turn on the event loop
"""
