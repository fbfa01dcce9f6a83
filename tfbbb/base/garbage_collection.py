"""Fewer garbage collections while TensorFlow traces graphs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Python's own default is a search after every 700 new objects.
_OBJECTS_BETWEEN_SEARCHES = 100_000


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Searches for cyclic garbage less often within the block.

    Tracing makes hundreds of thousands of objects that live on, and each full search
    visits all of them: a tenth of the time of a small training.

    Example:

    >>> with rare_garbage_collection():
    ...     gc.get_threshold()[0]
    100000
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _OBJECTS_BETWEEN_SEARCHES), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
