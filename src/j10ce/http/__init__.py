"""HTTP as every process of ours speaks it, without a framework.

Addresses and bytes come in; requests, answers and lines go out. Nothing here knows an object of the API.

    addresses   says which peers keep a secret
    retry       says how long to wait before the next attempt
    lines       cuts a stream of bytes into lines
    client      asks over asyncio streams
    server      answers over asyncio streams, with every size and wait bounded
"""
