"""The agent of one host: it senses, decides, writes, and says what it did.

Policies of a control plane, requests on a socket and the state of the machine come in; settings of the kernel and
reports go out. A room uses only rooms that stand below it in this list.

    main                reads the command line and is the process
    build               puts the parts together
    agent               is their life from start to stop
    revert_offline      gives everything back while no agent runs
    controllers         chooses who decides
    host_applications   adopts what strategies say runs beside all workloads
    socket/             answers people, hooks and the command line
    sync/               talks with the control plane
    report/             says what this node does, and what it could not do
    ring/               decides and writes, again and again
    plugins/            runs controllers of others in a process of their own
    cache               remembers what must outlive the process
    dialects            understands what workloads say in other systems' words
    config              holds what an operator may set
"""
