"""Who a caller is, what it may do, and who hears of it.

Connections, tokens and certificates come in; a Caller, a refusal or a line of the audit log goes out.

    tokens       recognises bearer tokens
    token_file   reads the credentials that an administrator keeps in a file
    tls          makes the TLS context, and knows callers by their certificates
    signing      signs certificates
    auth         finds the caller of an HTTP request
    roles        says what each role may do
    enrolment    gives a node a token of its own
    audit        writes the audit log
    gate         is what every request passes: authenticate, allow, count, audit
    own_writes   is the store as keepers get it: the audit log hears of what they write
    security     puts all of this together
"""
