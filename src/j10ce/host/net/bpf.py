"""The kernel's programs and maps, by the bpf system call itself: no library, and no compiler on the node."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from j10ce.errors import Unsupported

_NUMBERS: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_CREATE, _LOOKUP, _UPDATE, _DELETE, _NEXT, _LOAD = range(6)
_PROGRAM_BY_ID, _MAP_BY_ID, _INFO = 13, 14, 15
_HASH, _LRU_HASH = 1, 9
_NO_PREALLOC: Final = 1
_SCHED_CLS: Final = 3
_LICENCE: Final = b"Dual MIT/GPL\0"  # the kernel reads it: helpers that know cgroups are open to GPL alone
_LOG: Final = 1 << 16
_ATTR: Final = 128


def call(command: int, attr: bytes) -> int:
    """Raises OSError as the kernel says, Unsupported where the call has no number here."""
    number = _NUMBERS.get(_machine())
    if number is None:
        raise Unsupported("programs of the kernel", needs=f"one of {', '.join(sorted(_NUMBERS))}")
    buffer = ctypes.create_string_buffer(attr, max(_ATTR, len(attr)))
    done = int(_libc().syscall(ctypes.c_long(number), ctypes.c_int(command), buffer, ctypes.c_uint(_ATTR)))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return done


class Map:
    """A table that the kernel's programs and we share. Its descriptor ends with this object."""

    def __init__(self, fd: int, key: int, value: int) -> None:
        self.fd = fd
        self._key, self._value = key, value

    @classmethod
    def create(cls, name: str, key: int, value: int, most: int, *, forgets: bool = False) -> Map:
        """`forgets`: where there is no room, what was not looked up for longest goes."""
        kind, flags = (_LRU_HASH, 0) if forgets else (_HASH, _NO_PREALLOC)
        attr = struct.pack("=IIIIIII16s", kind, key, value, most, flags, 0, 0, name.encode()[:15])
        return cls(_unlocked(_CREATE, attr), key, value)

    @classmethod
    def by_id(cls, number: int) -> tuple[str, Map]:
        fd = call(_MAP_BY_ID, struct.pack("=III", number, 0, 0))
        info = _info(fd)
        _, _, key, value = struct.unpack_from("=IIII", info)
        return info[24:40].partition(b"\0")[0].decode(errors="replace"), cls(fd, key, value)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Those that are there now; what is deleted meanwhile may be missed."""
        key, following = None, ctypes.create_string_buffer(self._key)
        while True:
            try:
                call(_NEXT, self._attr(key, following))
            except FileNotFoundError:
                return
            key = following.raw
            if (value := self.get(key)) is not None:
                yield key, value

    def get(self, key: bytes) -> bytes | None:
        value = ctypes.create_string_buffer(self._value)
        try:
            call(_LOOKUP, self._attr(key, value))
        except FileNotFoundError:
            return None
        return value.raw

    def put(self, key: bytes, value: bytes) -> None:
        held = ctypes.create_string_buffer(value, self._value)
        call(_UPDATE, self._attr(key, held))

    def drop(self, key: bytes) -> None:
        with suppress(FileNotFoundError):
            call(_DELETE, self._attr(key, None))

    def _attr(self, key: bytes | None, value: ctypes.Array[ctypes.c_char] | None) -> bytes:
        self._kept = ctypes.create_string_buffer(key, self._key) if key is not None else None
        at = ctypes.addressof(self._kept) if self._kept is not None else 0
        return struct.pack("=IIQQQ", self.fd, 0, at, ctypes.addressof(value) if value is not None else 0, 0)

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self.fd)


def complaint(e: OSError) -> str:
    """In words, of an error that came from here or from netlink."""
    return "a table of the kernel's program is full" if e.errno == errno.E2BIG else e.strerror or str(e)


def load(name: str, code: bytes) -> int:
    """A classifier's descriptor; OSError says what the verifier objects to."""
    instructions, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENCE)
    log = ctypes.create_string_buffer(_LOG)
    count, at = len(code) // 8, ctypes.addressof
    head = struct.pack("=IIQQ", _SCHED_CLS, count, at(instructions), at(licence))
    tail = struct.pack("=II16s", 0, 0, name.encode()[:15])
    try:
        return _unlocked(_LOAD, head + struct.pack("=IIQ", 0, 0, 0) + tail)
    except OSError as e:
        with suppress(OSError):  # once more, to hear why
            os.close(call(_LOAD, head + struct.pack("=IIQ", 1, _LOG, at(log)) + tail))
        said = log.value.decode(errors="replace").strip().splitlines()
        raise OSError(e.errno, f"{e.strerror}; the verifier says: {said[-1] if said else 'nothing'}") from e


def maps_of(program: int) -> dict[str, Map]:
    """By name, of the program with that number; OSError where it is gone or nothing may be seen of it."""
    fd = call(_PROGRAM_BY_ID, struct.pack("=III", program, 0, 0))
    try:
        numbers = (ctypes.c_uint32 * 8)()
        given = bytearray(256)
        struct.pack_into("=IQ", given, 52, 8, 0)
        struct.pack_into("=Q", given, 56, ctypes.addressof(numbers))
        info = _info(fd, bytes(given))
        (count,) = struct.unpack_from("=I", info, 52)
        return dict(Map.by_id(n) for n in numbers[: min(count, 8)])
    finally:
        os.close(fd)


def _info(fd: int, given: bytes = b"") -> bytes:
    info = ctypes.create_string_buffer(given, 256)
    call(_INFO, struct.pack("=IIQ", fd, 256, ctypes.addressof(info)))
    return info.raw


def _unlocked(command: int, attr: bytes) -> int:
    """Before Linux 5.11 what is made counts as locked memory, of which there is little."""
    try:
        return call(command, attr)
    except PermissionError:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return call(command, attr)


@cache
def _machine() -> str:
    return platform.machine()


@cache  # each is a class of its own, and a tree of a thousand workloads takes thousands of calls
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
