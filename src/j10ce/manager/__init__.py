"""The control plane: it serves the API, judges policies for the fleet, and keeps true what follows from objects.

Requests of people, agents and Kubernetes come in; answers, stored objects and their status go out. A room uses only
rooms that stand below it in this list.

    main          reads the command line and runs one plane until it is stopped
    fleet_plane   puts a manager of many hosts together
    kube_plane    puts a manager of a Kubernetes cluster together
    plane         is what both are made of, and how both run
    app           is the HTTP application: access first, then the routes
    server        opens the sockets and runs uvicorn on them
    grpc/         carries the verbs as gRPC calls
    openapi/      describes the API to its clients
    config        holds what the command line may say
    logs          sets up the log lines of this process
    connection    bounds what a peer may keep an HTTP connection waiting for
    api/          carries the verbs as REST
    kube/         is what only a manager in a Kubernetes cluster does
    keepers/      is what the leader does for as long as it leads
    policies/     decides what becomes of each policy
    access/       says who a caller is and what it may do
    fairness/     says how much a caller may use
    telemetry/    measures and traces
    documents/    holds the objects in memory, and what each node obeys
    changes/      makes an object of what a client wrote
    asgi/         reads requests and writes answers
    identity      names who asks, and what for
"""
