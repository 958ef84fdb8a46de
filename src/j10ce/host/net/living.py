"""Whether a cgroup still is: asked by its id, which is all that a class knows of whom it was for."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from typing import Final

_BY_ID: Final = 0xFE  # FILEID_KERNFS
_HANDLE: Final = struct.Struct("=IiQ")


def dead(mount: str, ids: Iterable[int]) -> set[int]:
    """Those that are gone for certain; where nothing can be asked, nobody is."""
    libc, gone = ctypes.CDLL(None, use_errno=True), set()
    at = os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number in ids:
            handle = ctypes.create_string_buffer(_HANDLE.pack(8, _BY_ID, number), _HANDLE.size)
            fd = int(libc.open_by_handle_at(at, handle, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            if fd >= 0:
                os.close(fd)
            elif ctypes.get_errno() == errno.ESTALE:
                gone.add(number)
    finally:
        os.close(at)
    return gone
