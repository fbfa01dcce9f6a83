"""Entry point of the script `tfbbb` and of `python -m tfbbb`."""

import gc
import os
import signal
import sys

_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Runs the command line; Ctrl-C ends it quietly with exit code 130."""
    # First of all: what a library imports may take an exception for its own.
    _exit_at_once()
    try:
        from tfbbb.cli import app

        # From here on there may be something to clean up.
        if signal.getsignal(signal.SIGINT) is _exit:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    finally:
        # Freeing the graphs of TensorFlow one by one takes a second.
        gc.freeze()
        # Python's own clean-up would show a second Ctrl-C as an error.
        _exit_at_once()


def _exit_at_once() -> None:
    """Makes Ctrl-C end the process, unless a shell made it ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _exit)


def _exit(number: int, frame: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
