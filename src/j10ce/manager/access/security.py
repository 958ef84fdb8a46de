"""All that stands between the network and the objects, put together: credentials, limits, TLS, audit log."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from j10ce.errors import Denied
from j10ce.manager.access import token_file
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access, is_loopback
from j10ce.manager.access.tls import follow_files, reload_certificate, server_context
from j10ce.manager.access.tokens import Keyring
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.store.store import Store


class SecurityOptions(NamedTuple):
    listen: str
    token: str = ""  # of the owner; empty: none
    auth: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    audit_log: Path | None = None


class Defence:
    def __init__(
        self, options: SecurityOptions, store: Store, wall: Callable[[], float], clock: Callable[[], float]
    ) -> None:
        """Raises Denied or Invalid where a file cannot be used, or where the address is open and nothing guards it."""
        check(options)
        self.keyring = Keyring(store, wall, owner=options.token)
        self.access = Access(self.keyring, Limits(clock), loopback=is_loopback(options.listen))
        self.audit = Audit(options.audit_log, wall)
        self.tls: ssl.SSLContext | None = None
        self._asked = asyncio.Event()
        self._reloads: dict[tuple[Path, ...], Callable[[], None]] = {}
        if options.auth:
            self.keyring.static = token_file.entries(token_file.load(options.auth))
            self._reloads[(options.auth,)] = partial(token_file.reload, self.keyring, options.auth)
        if options.tls_cert and options.tls_key:
            cert, key = options.tls_cert, options.tls_key
            self.tls = server_context(cert, key, options.client_ca)
            self._reloads[(cert, key)] = partial(reload_certificate, self.tls, cert, key)

    async def run(self) -> None:
        """Keep up with Credential objects and with files, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.keyring.follow())
            group.create_task(follow_files(self._reloads, self._asked))

    def reload(self) -> None:
        """Read every file again and open the audit log anew: for SIGHUP."""
        self.audit.close()
        self._asked.set()


def check(options: SecurityOptions) -> None:
    """Raises Denied for an address that would carry secrets in the clear, or let anyone in."""
    if bool(options.tls_cert) != bool(options.tls_key):
        raise Denied("--tls-cert and --tls-key go together: give both")
    if not is_loopback(options.listen) and not options.tls_cert:
        raise Denied(f"{options.listen} is not loopback: give --tls-cert and --tls-key, or listen on 127.0.0.1")
    if options.client_ca and not options.tls_cert:
        raise Denied("--client-ca needs TLS: give --tls-cert and --tls-key")
    if not (options.token or options.auth or options.client_ca):
        raise Denied("nobody could get in: give --auth, --token-file or --client-ca")
