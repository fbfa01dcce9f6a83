"""The names of datasets, and the files of jobs: `DATA_DIR/jobs/JOB_ID/`."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from service.shared.database import new_id
from service.shared.settings import Settings

_DISCARDED = "discarded-"
_LONGEST_LINE = 500


def dataset_name(sha256: str, format: str) -> str:
    """Returns the name of a dataset in the store."""
    return f"{sha256}.{format}"


class JobFiles:
    """The files of one job: its log, and its scratch until it ends."""

    def __init__(self, settings: Settings, job_id: str) -> None:
        self.directory = settings.data_dir / "jobs" / job_id
        self.log = self.directory / "log.txt"
        self.scratch = self.directory / "scratch"

    def log_tail(self, num_bytes: int) -> str:
        """Returns the end of the log, from the start of a line."""
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, 2)
                # With the byte before, which may end a line.
                file.seek(max(0, size - num_bytes - 1))
                text = file.read()
        except FileNotFoundError:
            return ""
        if size > num_bytes:
            text = text.partition(b"\n")[2]
        return text.decode(errors="replace")

    def discard_scratch(self) -> None:
        """Renames the scratch directory, for `remove_discarded` to remove later."""
        with suppress(FileNotFoundError):
            self.scratch.rename(self.directory / f"{_DISCARDED}{new_id()}")

    def remove_discarded(self) -> None:
        """Removes the discarded scratch."""
        for discarded in self.directory.glob(f"{_DISCARDED}*"):
            _remove(discarded)

    def remove(self) -> None:
        """Removes all files of the job."""
        _remove(self.directory)


def last_line(log: str) -> str | None:
    """Returns the last line that says something, of JSON its message or exception."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if not lines:
        return None
    with suppress(ValueError):
        found = json.loads(lines[-1])
        if isinstance(found, dict):
            told = str(found.get("exception") or found.get("message") or "")
            lines = told.strip().splitlines() or lines
    # PostgreSQL refuses texts with a NUL character.
    return lines[-1].replace("\0", "\N{REPLACEMENT CHARACTER}")[:_LONGEST_LINE]


def jobs_with_scratch(settings: Settings) -> set[str]:
    """Returns the ids of jobs with scratch, discarded scratch included."""
    jobs = settings.data_dir / "jobs"
    found = [*jobs.glob("*/scratch"), *jobs.glob(f"*/{_DISCARDED}*")]
    return {path.parent.name for path in found}


def directory_bytes(directory: Path) -> int:
    """Returns the bytes of the files below a directory, which others may change."""
    num_bytes = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                num_bytes += Path(place, name).lstat().st_size
    return num_bytes


def _remove(directory: Path) -> None:
    # Another process may be removing the same directory.
    while directory.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(directory)
