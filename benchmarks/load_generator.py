"""Sends one HTTP request again and again, from a process of its own.

Reads settings as JSON from standard input, and writes figures as JSON. A client of raw
sockets: the less it costs, the more of the cores the server has.
"""

import asyncio
import json
import sys
import time
from collections import Counter, deque
from typing import Any

_TICK = 0.002


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
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        """Counts a response when it is complete."""
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        self._received.clear()
        self._load.answered(int(head[9:12]), time.perf_counter() - self._begin)
        self._begin = 0.0
        self._load.idle(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Counts the request that got no response."""
        if self._begin:
            self._load.lost += 1


class Load:
    """Requests in a closed loop, or at a rate.

    Args:
        request: The bytes of the request.
        rate: Requests per second; 0 for a closed loop, in which every connection sends
            its next request when it has its response.
    """

    def __init__(self, request: bytes, rate: float) -> None:
        self.request = request
        self.lost = self.unsent = 0
        self.seconds: dict[int, list[float]] = {}
        self._rate = rate
        self._idle: deque[Client] = deque()
        self._is_running = False

    def idle(self, client: Client) -> None:
        """Gives a connection its next request."""
        if self._is_running and not self._rate:
            client.send(time.perf_counter())
        else:
            self._idle.append(client)

    def answered(self, status: int, seconds: float) -> None:
        """Counts a response."""
        self.seconds.setdefault(status, []).append(seconds)

    async def run(self, port: int, connections: int, seconds: float) -> None:
        """Sends for some seconds, and then waits for the responses."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Client(self), "127.0.0.1", port)
        self._is_running = True
        begin = time.perf_counter()
        if self._rate:
            await self._send_at_rate(begin, seconds)
        else:
            for client in [self._idle.popleft() for _ in range(connections)]:
                self.idle(client)
            await asyncio.sleep(seconds)
        self._is_running = False
        give_up = time.perf_counter() + 10.0
        while len(self._idle) + self.lost < connections:
            if time.perf_counter() > give_up:
                self.lost += connections - len(self._idle) - self.lost
                break
            await asyncio.sleep(_TICK)

    async def _send_at_rate(self, begin: float, seconds: float) -> None:
        sent = 0
        while (now := time.perf_counter()) < begin + seconds:
            while sent < (now - begin) * self._rate:
                if self._idle:
                    self._idle.popleft().send(begin + sent / self._rate)
                else:
                    self.unsent += 1
                sent += 1
            await asyncio.sleep(_TICK)


def main() -> None:
    """Sends the load that standard input describes."""
    given = json.load(sys.stdin)
    body = given["body"].encode()
    lines = [
        f"POST {given['path']} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *given["headers"],
    ]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    load = Load(request, given["rate"])
    asyncio.run(load.run(given["port"], given["connections"], given["seconds"]))
    limit = given["deadline"]
    good = sorted(load.seconds.get(200, []))
    figures = {
        "answered": len(good),
        "in_time": sum(seconds <= limit for seconds in good),
        "statuses": Counter({k: len(v) for k, v in load.seconds.items()}),
        "p50_ms": 1e3 * good[len(good) // 2] if good else None,
        "p99_ms": 1e3 * good[len(good) * 99 // 100] if good else None,
        "lost": load.lost,
        "unsent": load.unsent,
        "client_cpu": time.process_time() / given["seconds"],
    }
    refused = sorted(load.seconds.get(503, []))
    figures["refused_p99_ms"] = (
        1e3 * refused[len(refused) * 99 // 100] if refused else None
    )
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
