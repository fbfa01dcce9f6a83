"""Runs functions on uploaded files in processes of their own, under limits."""

import asyncio
import logging
import os
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson

from service.shared.errors import InvalidRequest, InvalidTable, RequestTooLarge
from service.shared.sandbox import Limits, Task
from tfbbb.base.types import JsonObject

logger = logging.getLogger(__name__)

_MODULE = "service.sandbox"
# Imports take a while on a busy machine.
_SECONDS_TO_START = 30.0
# The longest line of a process.
_MOST_BYTES = 2**28
# The errors of the functions.
_ERRORS = {one.__name__: one for one in (InvalidRequest, InvalidTable, RequestTooLarge)}
# The starts of variables that may hold a key or a password: of the service, of
# PostgreSQL, and of the storages that hold datasets.
_SECRET = ("TFBBB_", "PG", "AWS_", "GOOGLE_", "AZURE_")
# The address space is limited, so libraries must not reserve more than they use.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "2",
}


class Sandbox:
    """Runs the functions of `service.sandbox`, of each some at the same time."""

    def __init__(self, processes: int = 2) -> None:
        self._running: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(processes)
        )

    async def lines(self, name: str, task: Task) -> AsyncGenerator[JsonObject]:
        """Runs a function; yields each `progress`, and at last the `result`.

        Raises the error of the function, and `InvalidTable` if its process dies.
        """
        async with self._running[name], aclosing(_run(name, task)) as lines:
            async for line in lines:
                if (error := line.get("error")) is not None:
                    raise _ERRORS[error["kind"]](error["message"], error["field"])
                yield line

    async def result(self, name: str, task: Task) -> JsonObject:
        """Runs a function, and returns its result."""
        found: JsonObject = {}
        async for line in self.lines(name, task):
            found = line
        result: JsonObject = found["result"]
        return result


async def _run(name: str, task: Task) -> AsyncGenerator[JsonObject]:
    """Yields the lines of a process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _MODULE, name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
        limit=_MOST_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    line: JsonObject = {}
    seconds = task.limits.seconds + _SECONDS_TO_START
    try:
        process.stdin.write(task.model_dump_json().encode())
        process.stdin.close()
        while "result" not in line and "error" not in line:
            async with asyncio.timeout(seconds):
                text = await process.stdout.readline()
                if not text:
                    errors = (await process.stderr.read())[-1000:]
                    code = await process.wait()
                    logger.warning(
                        "the sandbox of %s ended with %s: %s",
                        task.path.name,
                        code,
                        errors.decode(errors="replace"),
                    )
                    raise InvalidTable(_describe_end(code, task.limits))
            line = orjson.loads(text)
            yield line
    except TimeoutError:
        raise InvalidTable(_describe_timeout(task.limits.seconds)) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _describe_timeout(seconds: float) -> str:
    return (
        f"The table takes longer to read than {seconds:g} s "
        "(TFBBB_INSPECTION_SECONDS); Parquet files are the fastest to read."
    )


def _describe_end(code: int, limits: Limits) -> str:
    """Returns the error of a file whose reader has ended before its time."""
    if code == -signal.SIGXCPU:
        return _describe_timeout(limits.seconds)
    return (
        "The table cannot be read: it needs more memory than the limit of "
        f"{limits.memory_bytes} bytes, or crashes the reader; write it in smaller "
        "row groups or batches, or as CSV."
    )


def _environment() -> dict[str, str]:
    """Returns the environment without keys, passwords and credentials of storages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_SECRET)}
    return kept | ENVIRONMENT
