"""The files of jobs: `DATA_DIR/jobs/JOB_ID/`."""

import shutil
from collections.abc import Iterator
from contextlib import suppress

from service.settings import Settings


class JobFiles:
    """Where one job keeps what it writes.

    Attributes:
        directory: All of it.
        log: What its processes wrote; it stays as long as the job.
        scratch: Prepared rows and checkpoints, until the job ends.
    """

    def __init__(self, settings: Settings, job_id: str) -> None:
        self.directory = settings.data_dir / "jobs" / job_id
        self.log = self.directory / "log.txt"
        self.scratch = self.directory / "scratch"

    def log_tail(self, num_bytes: int) -> str:
        """The end of the log, from the start of a line."""
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - num_bytes))
                text = file.read()
        except FileNotFoundError:
            return ""
        if size > num_bytes:
            text = text.partition(b"\n")[2]
        return text.decode(errors="replace")

    def remove_scratch(self) -> None:
        """Removes what an ended job needs no more."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.scratch)

    def remove(self) -> None:
        """Removes everything, with the job."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.directory)


def jobs_with_scratch(settings: Settings) -> Iterator[str]:
    """The ids of jobs that have a scratch directory."""
    for scratch in (settings.data_dir / "jobs").glob("*/scratch"):
        yield scratch.parent.name
