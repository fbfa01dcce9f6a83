"""A port for a server of a test."""

import socket


def free_port() -> int:
    """Returns a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
