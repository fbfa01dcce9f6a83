"""Which faults of a load pass by themselves, and which are in the files."""

import errno
import os

# The status codes of TensorFlow that say that it could not, not that it found a fault.
_TENSORFLOW = frozenset(
    {
        *("ResourceExhaustedError", "UnavailableError"),
        *("AbortedError", "DeadlineExceededError", "CancelledError"),
    }
)
# TensorFlow has no code for these, and quotes the message of the system.
_QUOTED = tuple(map(os.strerror, (errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE)))


def is_passing(error: BaseException) -> bool:
    """Whether a later try may succeed with the same files.

    An `OSError` says that a file could not be read, and nothing about its content: no
    descriptor or memory was free, or the disk did not answer. A file that was read and
    is not the one that was exported is another file for ever.

    Example:

    >>> is_passing(OSError(errno.EMFILE, "Too many open files"))
    True
    >>> is_passing(ValueError("The file was written by another program"))
    False
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError | MemoryError):
            return True
        if isinstance(cause, RuntimeError) and "can't start new thread" in str(cause):
            return True
        if type(cause).__module__.startswith("tensorflow") and (
            type(cause).__name__ in _TENSORFLOW
            or any(reason in str(cause) for reason in _QUOTED)
        ):
            return True
        cause = cause.__cause__
    return False
