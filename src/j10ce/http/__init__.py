"""HTTP as every process of ours speaks it, without a framework.

Addresses and bytes come in; requests, answers and lines go out. Nothing here knows an object of the API.

    addresses   says which peers keep a secret
    retry       says how long to wait before the next attempt
    status      is the table of errors and codes, in both directions
    lines       cuts a stream of bytes into lines
    dialogue    is HTTP as a client without a socket: agents and commands share it
    client      asks over asyncio streams
    server      answers over asyncio streams, with every size and wait bounded
"""
