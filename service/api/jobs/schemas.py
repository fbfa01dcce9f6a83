"""The bodies of `/v1/jobs`."""

import time
from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, Field

from service.shared.database.tables import Job
from service.shared.job_state import ENDED, JobState
from tfbbb.base.texts import MODEL_NAME
from tfbbb.base.types import JsonObject
from tfbbb.judging.verdict import verdict
from tfbbb.training.job_clock import LOADING, WAITING
from tfbbb.training.spec import JobSpec

_ID = r"^[0-9a-f]{24}$"
_EXAMPLE_ID = "5f1d7e2a9c3b4d6e8f012345"

Id = Annotated[str, Field(pattern=_ID)]
Name = Annotated[str, Field(pattern=f"^{MODEL_NAME}$")]
JobId = Annotated[
    str, Path(pattern=_ID, description="`GET /v1/jobs` lists the ids of jobs.")
]


_EXAMPLE = {"dataset_id": _EXAMPLE_ID, "target": "price", "name": "houses"}


class JobRequest(JobSpec, json_schema_extra={"examples": [_EXAMPLE]}):
    """The fields of a job; only `dataset_id`, `target` and `name` are required."""

    dataset_id: Id = Field(description="Id of the table, from `POST /v1/datasets`.")
    name: Name = Field(description="Model of which the job publishes a version.")
    priority: int = Field(0, strict=True, ge=-100, le=100, description="Higher first.")

    def spec(self) -> JsonObject:
        """Returns the fields of `JobSpec`, with every default filled in."""
        return self.model_dump(mode="json", include=set(JobSpec.model_fields))


class JobSummary(BaseModel):
    """A job in the list of jobs. Times are UTC."""

    id: Id
    name: Name
    state: JobState
    target: str | list[str]
    dataset_id: Id | None = Field(description="`null` after the dataset was deleted.")
    priority: int
    attempt: int
    progress: JsonObject = Field(
        description="What is tried (`stage`), epochs, steps and latest metrics."
    )
    timing: JsonObject | None = Field(
        description="The `stage`, the share `done` of the whole job, least and most "
        "`seconds_left`, and the seconds `elapsed`; `null` once the job has ended. "
        "Before a job begins, `seconds_left` is what its training may take."
    )
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None = Field(description="Reason of a failure.")
    version: int | None = Field(description="The version that the job published.")
    verdict: str | None = Field(
        None, description="`learned nothing`, `wrong in sum`, or better baselines."
    )

    @classmethod
    def from_row(cls, job: Job, judgement: JsonObject | None, log: str = "") -> Self:
        """Creates the description of a row of the database."""
        same = {name: getattr(job, name, None) for name in cls.model_fields}
        return cls.model_validate(
            {
                **same,
                "target": job.spec["target"],
                "progress": {k: v for k, v in job.progress.items() if k != "timing"},
                # The clock of the database may differ by less than what is shown.
                "timing": timing(job, time.time()),
                "cancel_requested": job.cancel_requested_at is not None,
                "verdict": verdict(judgement),
                "judgement": judgement,
                "log": log,
            }
        )


class JobStatus(JobSummary):
    """A job with its spec and its log."""

    dataset_sha256: str = Field(description="SHA-256 of the uploaded bytes.")
    spec: JsonObject = Field(description="With every default filled in.")
    log: str = Field(description="The end of the job's log.")
    judgement: JsonObject | None = Field(
        description="The `figures` of the version beside those of baselines, "
        "`sentences` and `warnings` about them, whether the model `learned`, and "
        "whether the version `becomes_latest`; `null` before the job succeeds."
    )


class JobPage(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobSummary]
    next_cursor: str | None


_FIELDS = ("stage", "done", "seconds_left", "elapsed")


def timing(job: Job, now: float) -> JsonObject | None:
    """Returns stage, share done and seconds left of a job; None if it has ended.

    They are what its worker has last told, which it does every second. Before the first
    worker has told, the seconds are those expected of its spec and its table.
    """
    if job.state in ENDED:
        return None
    told: JsonObject = job.progress.get("timing") or {}
    is_queued = job.state == JobState.QUEUED
    if not is_queued and told.get("attempt") == job.attempt:
        return {name: told[name] for name in _FIELDS}
    since = now if is_queued else job.started_at or now
    return {
        "stage": WAITING if is_queued else LOADING,
        "done": told.get("done", 0.0),
        "seconds_left": None if "attempt" in told else told.get("seconds_left"),
        "elapsed": round(max(now - since, 0.0), 1),
    }
