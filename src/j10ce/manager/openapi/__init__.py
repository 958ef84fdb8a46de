"""How the API describes itself to its clients.

The table of kinds and their structs come in; OpenAPI documents, discovery and the shape of messages go out.

    fields            says what every stored field means
    fields_memory     says what a profile may say of memory
    fields_devices    says what a profile and a strategy may say of networks and disks
    fields_strategy   says what a strategy may say of nodes
    fields_answered   says the same of what is answered and not stored
    shape             says how structs look as protobuf messages
    document          is the OpenAPI 3.1 document
    kubectl           is the same in the dialects that kubectl reads
    swagger_wire      writes Swagger 2.0 as protobuf
    serve             answers with these documents
    discovery         says which kinds there are
"""
