"""Ends a command in order when it is asked to end."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exit_on_sigterm(code: int) -> Iterator[None]:
    """Turns SIGTERM into `SystemExit`, so that `finally` blocks run."""

    def exit_process(number: int, frame: object) -> None:
        sys.exit(code)

    previous = signal.signal(signal.SIGTERM, exit_process)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
