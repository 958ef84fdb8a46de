"""What a request makes of an object: bytes come in, plain data goes out.

plain_yaml: YAML of JSON's values, bounded
"""
