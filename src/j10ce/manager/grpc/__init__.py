"""The verbs of the API as gRPC calls.

Messages come in; messages and google.rpc.Status go out. The verbs behind them are those of REST.

    proto/        holds the messages, and the code made of them
    codec         turns structs into messages and back
    status        turns errors into gRPC's codes
    certificate   follows the server's certificates, and knows callers by theirs
    visit         is one call of a caller that is known
    gate          is around every call: access, limits, traces, metrics, audit
    watch         sends events in order
    calls         are the verbs of one kind
    actions       are calls that are no verb of a stored object
    health        answers who asks whether we are well
    reflection    answers what there is to call
    server        puts these together
    opening       opens the server where its packages are installed
"""
