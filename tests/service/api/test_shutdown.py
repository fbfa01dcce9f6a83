import asyncio
import os
import signal

import pytest

from service.api.server import shutdown_event


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event_and_reaches_the_server_too(number):
    reached = []

    async def serve():
        with shutdown_event() as stopping:
            assert not stopping.is_set()
            os.kill(os.getpid(), number)
            await stopping.wait()

    before = signal.signal(number, lambda number, frame: reached.append(number))
    try:
        server = signal.getsignal(number)
        asyncio.run(serve())
        assert signal.getsignal(number) is server
    finally:
        signal.signal(number, before)
    assert reached == [number]
