"""Commands about objects and the fleet.

Options and files come in; requests to the API go out, and their answers are printed.

    objects     is apply, delete and diff
    describe    shows one object to a person
    strategy    asks what strategies say of a node
    nodes       is cordon and uncordon, and one node for a person
    get         is get and describe
    place       chooses a node for a workload
    rollout     follows, stops and undoes changes of policies
    tokens      makes, lists and revokes tokens
    authority   is a certificate authority in a folder
    certs       makes certificates
    backup      is backup, restore and migrate
"""
