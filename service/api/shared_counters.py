"""Adds up the counters of several API processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from service.shared.temporary import temporary_directory

# Where the library of the metrics keeps the counters of all processes. It reads this
# variable when it is imported, so this module must not import it.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_counters() -> Iterator[None]:
    """Makes this process and its children share their counters until the block ends."""
    with temporary_directory("metrics") as directory:
        os.environ[VARIABLE] = str(directory)
        try:
            yield
        finally:
            del os.environ[VARIABLE]
