"""What a request makes of an object.

Bytes and the stored object come in; the plain data of the next object goes out, or an error that names the field.

    plain_yaml   reads YAML of JSON's values, within bounds
    nulls        leaves out what clients write and do not mean
    patches      applies JSON merge patches and JSON patches
    config       reads what a client applies
    topology     says which values merge, and which are one decision
    fields       addresses every decision inside an object
    merge        merges plain data leaf by leaf, and takes it apart again
    ownership    keeps who decided what, through plain writes and server-side apply
"""
