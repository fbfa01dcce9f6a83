"""Runs inspection processes, because a hostile file may crash its reader."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from service.api.datasets.file_reader import (
    SECONDS_TO_START,
    FileReader,
    describe_end,
    describe_timeout,
)
from service.shared.errors import InvalidTable
from service.shared.file_rows import FileTask
from service.shared.inspection import (
    Inspection,
    InspectionResult,
    InspectionTask,
    Limits,
    Preview,
)
from tfbbb.tables.format import Format

logger = logging.getLogger(__name__)

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


class Inspector:
    """Starts inspection processes, and limits how many run at the same time.

    Inspections, previews and readers of rows are limited separately.
    """

    def __init__(self, processes: int = 2) -> None:
        self._inspections = asyncio.Semaphore(processes)
        self._previews = asyncio.Semaphore(processes)
        self._readers = asyncio.Semaphore(processes)

    async def inspect(self, path: Path, format: Format, limits: Limits) -> Inspection:
        """Reads all rows of a table."""
        task = InspectionTask(path=path, format=format, limits=limits)
        async with self._inspections:
            found = (await _outcome(task)).inspection
        assert found is not None
        return found

    async def preview(self, task: InspectionTask) -> Preview:
        """Reads the first rows of a table."""
        async with self._previews:
            shown = (await _outcome(task)).preview
        assert shown is not None
        return shown

    @asynccontextmanager
    async def rows(self, task: FileTask) -> AsyncIterator[FileReader]:
        """Starts a process that hands out the rows of a file, and ends it."""
        async with self._readers:
            process = await _start("file_rows", stderr=None)
            try:
                yield FileReader(process, task)
            finally:
                if process.returncode is None:
                    process.kill()


async def _outcome(task: InspectionTask) -> InspectionResult:
    outcome = await _run(task)
    if outcome.error is not None:
        raise InvalidTable(outcome.error)
    return outcome


async def _run(task: InspectionTask) -> InspectionResult:
    process = await _start("inspect", stderr=asyncio.subprocess.PIPE)
    seconds = task.limits.seconds
    try:
        async with asyncio.timeout(seconds + SECONDS_TO_START):
            answer, errors = await process.communicate(task.model_dump_json().encode())
    except TimeoutError:
        return InspectionResult(error=describe_timeout(seconds))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return InspectionResult.model_validate_json(answer)
    logger.warning(
        "the inspection of %s ended with %s: %s",
        task.path.name,
        process.returncode,
        errors[-1000:].decode(errors="replace"),
    )
    return InspectionResult(error=describe_end(process.returncode, task.limits))


async def _start(module: str, *, stderr: int | None) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"service.inspection_process.{module}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    """Returns the environment without keys, passwords and credentials of storages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_SECRET)}
    return kept | ENVIRONMENT
