"""Adds up the counters of several processes."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.shared.temporary import temporary_directory

# Where the library of the metrics keeps the counters of all processes. It reads this
# variable when it is imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_counters() -> Iterator[dict[str, str]]:
    """Yields the variables of processes that share their counters in the block."""
    with temporary_directory("metrics") as directory:
        yield {VARIABLE: str(directory)}
