"""What must be on the disk before anything is said of it."""

import os
from pathlib import Path


def flush(path: str | os.PathLike[str]) -> None:
    """Has the disk hold a file's bytes, or the names that are in a directory."""
    descriptor = os.open(Path(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
