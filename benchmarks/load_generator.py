"""Sends one HTTP request again and again, from a process of its own.

Reads settings as JSON from standard input, and writes figures as JSON. A client of raw
sockets: the less it costs, the more of the cores the server has.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import deque
from typing import Any

_TICK = 0.002
_TOGETHER = 100


class Client(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._received = bytearray()
        self._begin = 0.0

    def connection_made(self, transport: Any) -> None:
        """Waits for its first request."""
        self._transport = transport
        self._load.idle(self)

    def send(self, begin: float) -> None:
        """Sends the request; `begin` is when it was due."""
        self._begin = begin
        self._load.waiting[self] = begin
        self._transport.write(self._load.request)

    def give_up(self) -> None:
        """Hangs up on a request that was not answered in time."""
        self._begin = 0.0
        self._load.waiting.pop(self, None)
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Counts a response when it is complete."""
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        self._load.twice += len(body) > int(length) or not self._begin
        self._received.clear()
        self._load.waiting.pop(self, None)
        status = int(head[9:12])
        self._load.record(self._begin, status)
        self._begin = 0.0
        self._load.idle(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Counts the request that got no response."""
        begin = self._load.waiting.pop(self, None)
        if begin is not None:
            self._load.lost += 1
        self._load.disconnected(self)


class Load:
    """Requests in a closed loop, or at a rate.

    Args:
        request: The bytes of the request.
        port: The port of the server.
        rate: Requests per second; 0 for a closed loop, in which every connection sends
            its next request when it has its response.
        patience: Seconds after which a client of an open loop gives up and hangs up.
    """

    def __init__(self, request: bytes, port: int, rate: float, patience: float) -> None:
        self.request = request
        self.lost = self.unsent = self.gave_up = self.twice = 0
        # How late each turn of an open loop comes.
        self.lags: list[float] = []
        # The seconds of the responses by their status.
        self.seconds: dict[int, list[float]] = {}
        # When each request that waits was due, the oldest first.
        self.waiting: dict[Client, float] = {}
        self._port = port
        self._rate = rate
        self._patience = patience
        self._idle: deque[Client] = deque()
        self._is_running = False
        self._connecting: set[asyncio.Task[Any]] = set()

    def idle(self, client: Client) -> None:
        """Gives a connection its next request."""
        if self._is_running and not self._rate:
            client.send(time.perf_counter())
        else:
            self._idle.append(client)

    def record(self, begin: float, status: int) -> None:
        """Records the response to the request that was due at `begin`."""
        self.seconds.setdefault(status, []).append(time.perf_counter() - begin)

    def disconnected(self, client: Client) -> None:
        """Replaces a connection that has ended, in an open loop."""
        if client in self._idle:
            self._idle.remove(client)
        if self._is_running and self._rate:
            task = asyncio.ensure_future(self._connect())
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def run(self, connections: int, seconds: float) -> None:
        """Sends for some seconds, and then waits for the responses."""
        for place in range(0, connections, _TOGETHER):
            some = range(min(_TOGETHER, connections - place))
            await asyncio.gather(*(self._connect() for _ in some))
        self._is_running = True
        begin = time.perf_counter()
        if self._rate:
            await self._send_at_rate(begin, seconds)
        else:
            for client in [self._idle.popleft() for _ in range(len(self._idle))]:
                self.idle(client)
            await asyncio.sleep(seconds)
        self._is_running = False
        give_up = time.perf_counter() + 10.0
        while self.waiting and time.perf_counter() < give_up:
            if self._rate:
                self._give_up_late()
            await asyncio.sleep(_TICK)
        self.lost += len(self.waiting)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: Client(self), "127.0.0.1", self._port)

    async def _send_at_rate(self, begin: float, seconds: float) -> None:
        sent = 0
        while (now := time.perf_counter()) < begin + seconds:
            while sent < (now - begin) * self._rate:
                if self._idle:
                    self._idle.popleft().send(begin + sent / self._rate)
                else:
                    self.unsent += 1
                sent += 1
            self._give_up_late()
            await asyncio.sleep(_TICK)
            self.lags.append(time.perf_counter() - now - _TICK)

    def _give_up_late(self) -> None:
        due = time.perf_counter() - self._patience
        late = []
        for client, begin in self.waiting.items():
            if begin > due:
                break
            late.append(client)
        for client in late:
            self.gave_up += 1
            client.give_up()


def send_load(
    port: int,
    path: str,
    body: Any,
    key: str,
    *,
    connections: int,
    seconds: float,
    deadline: float,
    rate: float = 0.0,
) -> dict[str, Any]:
    """Sends requests from another process; returns the figures."""
    given = {
        "port": port,
        "path": path,
        "key": key,
        "body": json.dumps(body),
        "connections": connections,
        "seconds": seconds,
        "rate": rate,
        "deadline": deadline,
    }
    output = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    figures: dict[str, Any] = json.loads(output)
    return figures


def main() -> None:
    """Sends the load that standard input describes."""
    given = json.load(sys.stdin)
    body = given["body"].encode()
    lines = [
        f"POST {given['path']} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"Authorization: Bearer {given['key']}",
    ]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    limit = given["deadline"]
    load = Load(request, given["port"], given["rate"], limit)
    asyncio.run(load.run(given["connections"], given["seconds"]))
    good = sorted(load.seconds.get(200, []))
    figures = {
        "answered": len(good),
        "in_time": sum(seconds <= limit for seconds in good),
        "statuses": {k: len(v) for k, v in load.seconds.items()},
        "p50_ms": 1e3 * good[len(good) // 2] if good else None,
        "p99_ms": _p99_ms(good),
        "refused_p99_ms": _p99_ms(load.seconds.get(503, [])),
        "lost": load.lost,
        "gave_up": load.gave_up,
        "twice": load.twice,
        "unsent": load.unsent,
        "client_lag_p99_ms": _p99_ms(load.lags),
        "client_cpu": time.process_time() / given["seconds"],
    }
    json.dump(figures, sys.stdout)


def _p99_ms(seconds: list[float]) -> float | None:
    """Returns the 99th percentile in milliseconds, or None if there is none."""
    return 1e3 * sorted(seconds)[len(seconds) * 99 // 100] if seconds else None


if __name__ == "__main__":
    main()
