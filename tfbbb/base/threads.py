"""Parts of the rows, computed in threads: NumPy releases Python's lock over arrays."""

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")
_lock = threading.Lock()
# How many calls have limited the threads of BLAS, and how to lift the limit.
_limited = 0
_lift: Callable[[], None]


def map_in_threads(
    compute: Callable[[Part], Result], parts: Iterable[Part]
) -> list[Result]:
    """Returns the results of parts, in their order.

    There are as many threads as BLAS had when it was first asked, and at most as the
    process has processors: so `OMP_NUM_THREADS=1` means one. Meanwhile BLAS has one
    thread, as threads within threads wait for each other.
    """
    given = list(parts)
    number = min(len(given), num_threads())
    with one_blas_thread():
        if number <= 1:
            return list(map(compute, given))
        # Threads that outlive the call would be missing in a forked process.
        with ThreadPoolExecutor(number) as threads:
            return list(threads.map(compute, given))


def num_threads() -> int:
    """Returns the number of threads that compute parts."""
    return max(1, min(_blas_threads(), num_processors()))


def num_processors() -> int:
    """Returns the number of processors that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _blas() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@functools.cache
def _blas_threads() -> int:
    found = [library["num_threads"] for library in _blas().info()]
    return max(found, default=num_processors())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS to one thread, in the whole process, until the last call ends."""
    global _limited, _lift
    with _lock:
        if not _limited:
            _blas_threads()  # As many as without the limit.
            _lift = _blas().limit(limits=1).restore_original_limits
        _limited += 1
    try:
        yield
    finally:
        with _lock:
            _limited -= 1
            if not _limited:
                _lift()
