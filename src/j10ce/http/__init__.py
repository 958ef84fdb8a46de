"""HTTP as every process of ours speaks it, without a framework.

Addresses and bytes come in; requests, answers and lines go out. Nothing here knows an object of the API.

    addresses   says which peers keep a secret
    client      asks over asyncio streams
    server      answers over asyncio streams, with every size and wait bounded
"""
