"""Limits the wrong keys that come from an address."""

import fcntl
import hashlib
import ipaddress
import math
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.requests import HTTPConnection

from service.shared.errors import Unauthenticated, WrongKeysExceeded

# The file of the counts, beside the sockets of the model processes.
FILE = "wrong-keys"
_SECONDS = 60.0
# An address may stand in any of the slots of its row.
_ROWS, _SLOTS = 4096, 8
# The digest of an address, its count, and the time of the count.
_SLOT = struct.Struct("8sdd")


class WrongKeys:
    """Counts the wrong keys of each address, which all API processes share in a file.

    A count falls evenly to 0 in a minute. From `most` on, the address is refused until
    its count is below. The file has a bounded size: a new address takes the slot of
    that of its row which was counted longest ago.

    Addresses are those of clients, as the server takes them from a trusted proxy. The
    addresses of IPv6 count by their first 64 bits, all of which one client may have.
    """

    def __init__(
        self, file: Path, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        self._most = most
        self._clock = clock

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    @contextmanager
    def counting(
        self, connection: HTTPConnection, *, is_known: bool = False
    ) -> Iterator[None]:
        """Counts a key that turns out to be wrong in the block."""
        address = _network(connection)
        if not is_known:
            self._check(address)
        try:
            yield
        except Unauthenticated:
            self._count(address)
            raise

    def _check(self, address: bytes) -> None:
        _, count = self._find(address)
        if count > self._most - 1:
            seconds = (count - self._most + 1) * _SECONDS / self._most
            raise WrongKeysExceeded(
                f"Too many wrong keys came from this address, at most {self._most} per "
                "minute may (TFBBB_MAX_WRONG_KEYS_PER_MINUTE); try again in "
                f"{math.ceil(seconds)} s.",
                seconds,
            )

    def _count(self, address: bytes) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            place, count = self._find(address)
            slot = _SLOT.pack(_digest(address), count + 1, self._clock())
            os.pwrite(self._file, slot, place)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _find(self, address: bytes) -> tuple[int, float]:
        """Returns the place of an address in the file, and its present count."""
        digest = _digest(address)
        start = int.from_bytes(digest) % _ROWS * _SLOTS * _SLOT.size
        row = os.pread(self._file, _SLOTS * _SLOT.size, start)
        slots = list(_SLOT.iter_unpack(row.ljust(_SLOTS * _SLOT.size, b"\0")))
        for number, (found, count, at) in enumerate(slots):
            if found == digest:
                fallen = (self._clock() - at) * self._most / _SECONDS
                return start + number * _SLOT.size, max(0.0, count - fallen)
        oldest = min(range(_SLOTS), key=lambda number: slots[number][2])
        return start + oldest * _SLOT.size, 0.0


def _network(connection: HTTPConnection) -> bytes:
    """Returns the address of a client, of IPv6 the first half."""
    host = connection.client.host if connection.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.encode()
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return mapped.packed if mapped else address.packed[:8]
    return address.packed


def _digest(address: bytes) -> bytes:
    return hashlib.sha256(address).digest()[:8]
