"""Ports of the servers of tests."""

import secrets
import socket
from contextlib import suppress


def free_port() -> int:
    """Returns a port of 127.0.0.1 on which nothing listens.

    It is not one that the system gives to clients, of which one could take it before
    the server listens, or while it is started anew.
    """
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def accepts(port: int) -> bool:
    """Returns whether something listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
