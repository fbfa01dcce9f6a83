"""Talks with the process that hands out the rows of a file."""

import asyncio
import logging
import signal

from service.shared.errors import InvalidTable
from service.shared.file_rows import FileTask
from service.shared.frames import Frame, receive_async
from service.shared.inspection import Limits

logger = logging.getLogger(__name__)

# Imports take a while on a busy machine.
SECONDS_TO_START = 30.0


class FileReader:
    """The process that reads the rows of one file."""

    def __init__(self, process: asyncio.subprocess.Process, task: FileTask) -> None:
        self._process, self._task = process, task
        self._next = Frame(task.model_dump(mode="json"))

    async def ask(self, answer: Frame | None = None) -> Frame:
        """Sends the answer to the last block; returns the next block, or the end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        frame = self._next if answer is None else answer
        seconds = self._task.limits.seconds
        try:
            async with asyncio.timeout(seconds + SECONDS_TO_START):
                self._process.stdin.write(frame.head() + frame.body)
                await self._process.stdin.drain()
                found = await receive_async(self._process.stdout)
        except TimeoutError:
            raise InvalidTable(describe_timeout(seconds)) from None
        except (OSError, asyncio.IncompleteReadError):
            code = await self._process.wait()
            logger.warning("the reader of %s ended with %s", self._task.path.name, code)
            raise InvalidTable(describe_end(code, self._task.limits)) from None
        if (error := found.header.get("error")) is not None:
            raise InvalidTable(error)
        return found


def describe_timeout(seconds: float) -> str:
    """Returns the error of a file that takes too long to read."""
    return (
        f"The table takes longer to read than {seconds:g} s "
        "(TFBBB_INSPECTION_SECONDS); Parquet files are the fastest to read."
    )


def describe_end(code: int | None, limits: Limits) -> str:
    """Returns the error of a file whose reader has ended before its time."""
    if code == -signal.SIGXCPU:
        return describe_timeout(limits.seconds)
    return (
        "The table cannot be read: it needs more memory than the limit of "
        f"{limits.memory_bytes} bytes, or crashes the reader; write it in smaller "
        "row groups or batches, or as CSV."
    )
