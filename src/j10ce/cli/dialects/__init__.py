"""Other systems' configuration and words, turned into ours.

Files come in; objects of ours go out, and what could not be said in them goes to standard error.

    config_map   finds Koordinator's ConfigMap and nodes among objects, and says what becomes of them
    node_files   finds Terway's files of a node
    convert      prints them as native objects
    spoken       knows which dialects a cluster understands, and what a pod says in them
"""
