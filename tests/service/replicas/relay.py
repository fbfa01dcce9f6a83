"""A relay of TCP connections that can misbehave, between a replica and its database."""

import asyncio
import threading
from contextlib import suppress

_PIECE = 65536


class Relay:
    """Passes connections on to another port of this machine, in a thread."""

    def __init__(self, target):
        self._target = target
        # The port on which it listens.
        self.port = 0
        # Whether it accepts bytes and connections, and passes nothing on.
        self.silent = False
        # Seconds by which it delays each direction.
        self.delay = 0.0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._accept, "127.0.0.1", 0)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _accept(self, reader, writer):
        with suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader, writer):
        loop = asyncio.get_running_loop()
        pieces = asyncio.Queue()

        async def read():
            piece = b"?"
            while piece:
                piece = await reader.read(_PIECE)
                await pieces.put((loop.time() + self.delay, piece))

        async def write():
            piece = b"?"
            while piece:
                due, piece = await pieces.get()
                await asyncio.sleep(due - loop.time())
                while self.silent:
                    await asyncio.sleep(0.05)
                writer.write(piece)
                await writer.drain()

        with suppress(OSError):
            await asyncio.gather(read(), write())
        with suppress(OSError):
            writer.close()
