"""One error for a disk that refuses a write, whichever library has met it."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


@contextlib.contextmanager
def disk_faults_named(
    directory: str | os.PathLike[str],
    what: str = "",
    num_bytes: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Raises an `OSError` that names the directory and the bytes it has no room for.

    Python's own errors of a write name no file, and TensorFlow has errors of its own,
    which quote the system's message.

    Args:
        directory: Where the body writes.
        what: What it writes, e.g. `"the model"`.
        num_bytes: Returns about how many bytes that takes; called when the disk is
            full.

    Raises:
        OSError: The disk is full or can't be written.

    Example:

    >>> def write():
    ...     raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    >>> with disk_faults_named("models", "the model", lambda: 1000):
    ...     write()
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device; the model needs about 1000 bytes: ...
    """
    try:
        yield
    except Exception as error:
        number = _error_number(error)
        if number is None:
            raise
        reason = os.strerror(number)
        if number in _FULL and num_bytes is not None:
            # Without room in memory there is no figure.
            with contextlib.suppress(Exception):
                reason += f"; {what} needs about {num_bytes()} bytes"
        raise OSError(number, reason, os.fspath(directory)) from error


def _error_number(error: Exception) -> int | None:
    known = (*_FULL, *_REFUSED)
    if isinstance(error, OSError):
        return error.errno if error.errno in known else None
    if not type(error).__module__.startswith("tensorflow"):
        return None
    return next((n for n in known if os.strerror(n) in str(error)), None)
