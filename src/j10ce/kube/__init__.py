"""The client of a Kubernetes API server that the store, the agent, the manager and the command line share.

A URL or a kubeconfig and the kinds that are asked for come in; objects, events and our own errors go out.

    exec_credential   asks a credential plugin
    kubeconfig        reads kubeconfig files
    access            says how an API server is reached
    failure           says what a refusal means to us
    resource          knows the paths of kinds, and makes objects of JSON
    wire              reads listings and changes, whoever carries the bytes
    transport         carries requests by aiohttp, with fresh tokens and patience
    client            is the verbs of an API server
    events            writes Events, and bounds their number
    light             is lists and watches over the agent's own HTTP client
"""
