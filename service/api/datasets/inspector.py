"""Runs inspection processes, because a hostile file may crash its reader."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from service.shared.errors import InvalidTable
from service.shared.inspection import (
    Inspection,
    InspectionResult,
    InspectionTask,
    Limits,
    Preview,
)
from tfbbb.tables.format import Format

logger = logging.getLogger(__name__)

# Imports take a while on a busy machine.
_SECONDS_TO_START = 30.0
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

    Inspections and previews are limited separately.

    Args:
        processes: Most processes of each kind at the same time.
    """

    def __init__(self, processes: int = 2) -> None:
        self._inspections = asyncio.Semaphore(processes)
        self._previews = asyncio.Semaphore(processes)

    async def inspect(
        self, path: Path, format: Format, limits: Limits, names: Sequence[str] = ()
    ) -> Inspection:
        """Reads all rows of a table.

        Args:
            path: The file, or the directory of the files.
            format: The format of the table.
            limits: Limits on reading the table.
            names: The names of the files of a table of several.

        Raises:
            InvalidTable: If the file is not a table, or exceeds a limit.
        """
        task = InspectionTask(path=path, format=format, limits=limits, names=[*names])
        async with self._inspections:
            found = (await _outcome(task)).inspection
        assert found is not None
        return found

    async def preview(self, task: InspectionTask) -> Preview:
        """Reads the first rows of a table.

        Raises:
            InvalidTable: If the file is damaged.
        """
        async with self._previews:
            shown = (await _outcome(task)).preview
        assert shown is not None
        return shown


async def _outcome(task: InspectionTask) -> InspectionResult:
    outcome = await _run(task)
    if outcome.error is not None:
        raise InvalidTable(outcome.error)
    return outcome


async def _run(task: InspectionTask) -> InspectionResult:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service.inspection_process.inspect"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    seconds = task.limits.seconds
    try:
        async with asyncio.timeout(seconds + _SECONDS_TO_START):
            answer, errors = await process.communicate(task.model_dump_json().encode())
    except TimeoutError:
        return _timeout_result(seconds)
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
    if process.returncode == -signal.SIGXCPU:
        return _timeout_result(seconds)
    return InspectionResult(
        error="The table cannot be read: it needs more memory than the limit of "
        f"{task.limits.memory_bytes} bytes, or crashes the reader; write it in smaller "
        "row groups or batches, or as CSV."
    )


def _environment() -> dict[str, str]:
    """Returns the environment without keys, passwords and credentials of storages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_SECRET)}
    return kept | ENVIRONMENT


def _timeout_result(seconds: float) -> InspectionResult:
    return InspectionResult(
        error=f"The table takes longer to read than {seconds:g} s "
        "(TFBBB_INSPECTION_SECONDS); Parquet files are the fastest to read."
    )
