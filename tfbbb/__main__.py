"""Entry point of the script `tfbbb` and of `python -m tfbbb`."""

import signal
import sys


def main() -> None:
    """Runs the command line; Ctrl-C ends it quietly with exit code 130."""
    try:
        # Here, because the import takes so long that Ctrl-C may come meanwhile.
        from tfbbb.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    finally:
        # Python's own clean-up would show a second Ctrl-C as an error.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
