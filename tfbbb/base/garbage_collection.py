"""Fewer garbage collections while TensorFlow is imported, or traces graphs."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python's own default is a search after every 700 new objects.
_OBJECTS_BETWEEN_SEARCHES = 100_000
_lock = threading.Lock()
# The thresholds before the first of the blocks that run, of which there may be several
# in threads; None if none runs.
_before: tuple[int, int, int] | None = None
_blocks = 0


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Searches for cyclic garbage less often within the block.

    Tracing makes hundreds of thousands of objects that live on, and each full search
    visits all of them. A process without searches (threshold 0) stays without.
    """
    global _before, _blocks
    with _lock:
        if not _blocks:
            _before = gc.get_threshold()
            if 0 < _before[0] < _OBJECTS_BETWEEN_SEARCHES:
                gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES, *_before[1:])
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks and _before is not None:
                gc.set_threshold(*_before)
