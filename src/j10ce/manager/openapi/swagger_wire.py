"""Swagger 2.0 in the protobuf form that kubectl asks for (message `openapi.v2.Document` of the gnostic project).

A manager without gRPC has no protobuf library, and writing needs little: a tag, a length, the bytes. A row of a table
below is the name of a JSON member, the number of its field, and how it is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

Write = Callable[[int, Any], bytes]
Rows = Mapping[str, tuple[int, Write]]


def document(swagger: Mapping[str, Any]) -> bytes:
    return _fields(DOCUMENT, swagger)


def _fields(rows: Rows, value: Mapping[str, Any]) -> bytes:
    """The members that have a row; an extension (`x-…`) is written by the row of that name."""
    out = b"".join(write(number, value[name]) for name, (number, write) in rows.items() if name in value)
    if "x-" in rows:
        number, write = rows["x-"]
        out += b"".join(write(number, pair) for pair in value.items() if pair[0].startswith("x-"))
    return out


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _any(number: int, value: object) -> bytes:
    """Any value as YAML, which JSON is."""
    return _bytes(number, _text(2, msgspec.json.encode(value).decode()))


def _many(write: Write) -> Write:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _message(rows: Callable[[], Rows]) -> Write:
    return lambda number, value: _bytes(number, _fields(rows(), value))


def _inside(number: int, write: Write) -> Write:
    """A message whose only field is this."""
    return lambda outer, value: _bytes(outer, write(number, value))


def _named(write: Write) -> Write:
    """A pair of a name and a value."""
    return lambda number, pair: _bytes(number, _text(1, pair[0]) + write(2, pair[1]))


def _mapping(number: int, write: Write) -> Write:
    """A message that is a list of pairs."""
    return lambda outer, value: _bytes(outer, b"".join(_named(write)(number, pair) for pair in value.items()))


def _type(number: int, value: str) -> bytes:
    return _bytes(number, _text(1, value))


def _parameter(number: int, value: Mapping[str, Any]) -> bytes:
    """One of its kinds, each wrapped in what tells it from the others."""
    if value["in"] == "body":
        return _bytes(number, _bytes(1, _bytes(1, _fields(BODY, value))))
    which, rows = (3, QUERY) if value["in"] == "query" else (4, PATH)
    return _bytes(number, _bytes(1, _bytes(2, _bytes(which, _fields(rows, value)))))


_schema: Final = _message(lambda: SCHEMA)
_operation: Final = _message(lambda: OPERATION)
_extension: Final = _named(_any)

SCHEMA: Final[Rows] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "description": (4, _text),
    "default": (5, _any),
    "maximum": (7, _double),
    "minimum": (9, _double),
    "pattern": (13, _text),
    "required": (19, _many(_text)),
    "enum": (20, _many(_any)),
    "additionalProperties": (21, _inside(1, _schema)),
    "type": (22, _type),
    "items": (23, _inside(1, _schema)),
    "properties": (25, _mapping(1, _schema)),
    "x-": (31, _extension),
}
BODY: Final[Rows] = {"name": (2, _text), "in": (3, _text), "required": (4, _flag), "schema": (5, _schema)}
_SHARED: Final[Rows] = {"required": (1, _flag), "in": (2, _text), "description": (3, _text), "name": (4, _text)}
QUERY: Final[Rows] = {**_SHARED, "type": (6, _text), "enum": (21, _many(_any))}
PATH: Final[Rows] = {**_SHARED, "type": (5, _text), "pattern": (17, _text)}
RESPONSE: Final[Rows] = {"description": (1, _text), "schema": (2, _inside(1, _schema))}
OPERATION: Final[Rows] = {
    "tags": (1, _many(_text)),
    "operationId": (5, _text),
    "consumes": (7, _many(_text)),
    "parameters": (8, _many(_parameter)),
    "responses": (9, _mapping(1, _inside(1, _message(lambda: RESPONSE)))),
    "x-": (13, _extension),
}
PATH_ITEM: Final[Rows] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
}
INFO: Final[Rows] = {"title": (1, _text), "version": (2, _text), "description": (3, _text)}
DOCUMENT: Final[Rows] = {
    "swagger": (1, _text),
    "info": (2, _message(lambda: INFO)),
    "paths": (8, _mapping(2, _message(lambda: PATH_ITEM))),
    "definitions": (9, _mapping(1, _schema)),
}
