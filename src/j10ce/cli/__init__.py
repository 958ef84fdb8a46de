"""What a person types: `j10ce-qos`. Commands are thin; they talk to the agent's socket and to the API.

Words of a command line come in; text, exit codes and requests go out.

    main         is the table of commands, each loaded when it is used
    look/        is the commands that show what this host's agent does, and why
    host/        is the commands about this host
    fleet/       is the commands about objects and the fleet
    pods/        is what people ask about a pod of Kubernetes
    dialects/    is other systems' configuration, turned into objects of ours
    prove/       is what each profile protects, measured on this machine
    simulate/    is clusters that are tried before they are touched
    completion   prints what teaches a shell to complete, and the help of a command
    amounts      reads options that take an amount
    meant        knows what people mean by the words that name objects
    manifests    reads objects from files
    peers        finds who a command talks to, and holds the options that commands share
    client       asks the agent and the API over HTTP
    accounts     reads what a kubeconfig says
    dirs         knows where the files of this host's agent are
    paths        knows the paths of the API, and the names that people use
    output       prints listings and errors
    screen       fits text to a terminal, and colours it
"""
