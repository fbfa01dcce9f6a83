"""The HTTP server of an API process."""

import asyncio
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service.api.http.protocol import JsonErrorProtocol

SECONDS_TO_FINISH_REQUESTS = 30
# Longer than nginx keeps idle connections (60 s): it may send a request just when this
# end closes one.
_SECONDS_IDLE = 75
# Each further one costs a microsecond per new connection.
_ACCEPTED_PER_TURN = 32
# One of each connection; many systems begin with 1024, and let the process take more.
_DESCRIPTORS = 2**16


def server(app: FastAPI) -> uvicorn.Server:
    """Creates the server of an app."""
    config = uvicorn.Config(
        app,
        http=JsonErrorProtocol,
        # `service.shared.logs` formats its lines, and `Requests` logs the requests.
        log_config=None,
        access_log=False,
        timeout_keep_alive=_SECONDS_IDLE,
        timeout_graceful_shutdown=SECONDS_TO_FINISH_REQUESTS,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Answers the requests of a listening socket until a signal ends the process."""
    raise_descriptor_limit()
    listener.setblocking(False)
    # The event loop accepts one connection per turn and socket: while its turns are
    # long, others would wait for seconds to be accepted.
    with ExitStack() as others:
        more = [
            others.enter_context(listener.dup()) for _ in range(_ACCEPTED_PER_TURN - 1)
        ]
        server.run(sockets=[listener, *more])


def raise_descriptor_limit() -> None:
    """Lets the process have as many connections as the system allows, up to 65 536."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def shutdown_event() -> Iterator[asyncio.Event]:
    """Yields an event that is set when the process receives SIGTERM or SIGINT.

    The server waits for running requests before it announces its shutdown. Endless
    requests and child processes must know earlier.
    """
    event, loop = asyncio.Event(), asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield event  # Only the main thread receives signals.
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(event.set)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
