"""The verbs of the API, and their REST form.

Requests that have passed the gate come in; objects, lists, tables and watches go out.

    query            says what a list or a watch asks for
    dependents       says what becomes of objects that another one owns
    verbs            is what the API does to objects, whatever carries it
    forms            keeps objects as JSON, and shows them as kubectl prints them
    stream           is a watch as an HTTP response
    watch            is a watch of objects, as lines of JSON
    document_watch   is the watch of one node's document
    place_policy     makes the policy that holds a placed workload's floor
    place            chooses a node for a workload
    agent_proxy      asks this host's agent for its workloads
    rest             is the table of routes
"""
