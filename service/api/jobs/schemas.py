"""The bodies of `/v1/jobs`."""

import time
from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from service.shared.database import tables
from service.shared.database.tables import Job
from service.shared.job_state import ENDED, JobState
from service.shared.json_types import JsonObject
from tfbbb.base.texts import MODEL_NAME
from tfbbb.judging.verdict import verdict
from tfbbb.training.job_clock import LOADING, WAITING
from tfbbb.training.spec import JobSpec

_ID = r"^[0-9a-f]{24}$"
_EXAMPLE_ID = "5f1d7e2a9c3b4d6e8f012345"

Id = Annotated[str, Field(pattern=_ID)]
Name = Annotated[str, Field(pattern=f"^{MODEL_NAME}$")]
JobId = Annotated[
    str,
    Path(
        pattern=_ID,
        description="Id of a job; `GET /v1/jobs` lists the ids.",
        examples=[_EXAMPLE_ID],
    ),
]


class JobRequest(JobSpec):
    """The fields of a job; only `dataset_id`, `target` and `name` are required."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"dataset_id": _EXAMPLE_ID, "target": "price", "name": "houses"}
            ]
        }
    )

    dataset_id: Id = Field(description="Id of the table, from `POST /v1/datasets`.")
    name: Name = Field(
        description="Name of the model; the job publishes its next version."
    )
    priority: int = Field(
        0,
        strict=True,
        ge=-100,
        le=100,
        description="Jobs with a higher priority start first.",
    )

    def spec(self) -> JsonObject:
        """Returns the fields of `JobSpec`, with every default filled in."""
        return self.model_dump(mode="json", include=set(JobSpec.model_fields))


class JobSummary(BaseModel):
    """A job in the list of jobs. Times are UTC."""

    id: Id
    name: Name
    state: JobState
    target: str
    dataset_id: Id | None = Field(description="`null` after the dataset was deleted.")
    priority: int
    attempt: int = Field(description="Number of attempts.")
    progress: JsonObject = Field(
        description="What is tried (`stage`), epochs, steps and latest metrics; empty "
        "before the job starts."
    )
    timing: JsonObject | None = Field(
        description="What the job is at: its `stage`, the share `done` of the whole "
        "job, least and most `seconds_left` (`null` before a worker works on it), and "
        "the seconds `elapsed` since then; `null` once the job has ended."
    )
    cancel_requested: bool = Field(
        description="Whether the job will stop as soon as it can."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None = Field(description="Reason of a failure.")
    version: int | None = Field(description="The version that the job published.")
    verdict: str | None = Field(
        None,
        description="`learned nothing`, `wrong in sum`, or the baselines than which "
        "the version has more error by two standard errors; `null` otherwise.",
    )

    @classmethod
    def from_row(cls, job: tables.Job, judgement: JsonObject | None) -> Self:
        """Creates the summary of a row of the database."""
        return cls.model_validate(_fields(job, judgement))


class JobStatus(JobSummary):
    """A job with its spec and its log."""

    dataset_sha256: str = Field(description="SHA-256 of the uploaded bytes.")
    spec: JsonObject = Field(
        description="The submitted spec, with every default filled in."
    )
    eta_seconds: float | None = Field(
        description="Estimated seconds until the job ends, the middle of "
        "`seconds_left`; `null` if unknown."
    )
    log: str = Field(description="The end of the job's log.")
    judgement: JsonObject | None = Field(
        description="The `figures` of the published version beside those of baselines "
        "on the same rows, `sentences` about them, the sentences that are "
        "`warnings`, whether the model `learned` anything of use, and whether the "
        "version therefore `becomes_latest`; `null` before the job succeeds."
    )

    @classmethod
    def from_job_and_log(
        cls, job: tables.Job, log: str, judgement: JsonObject | None
    ) -> Self:
        """Creates the full description of a row of the database."""
        fields = _fields(job, judgement)
        more = {
            "dataset_sha256": job.dataset_sha256,
            "spec": job.spec,
            "eta_seconds": _eta_seconds(fields["timing"]),
            "log": log,
            "judgement": judgement,
        }
        return cls.model_validate({**fields, **more})


class JobPage(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobSummary]
    next_cursor: str | None = Field(
        description="Send as `cursor` to get the next page; `null` on the last page."
    )


def _eta_seconds(at: JsonObject | None) -> float | None:
    """Returns the middle of the seconds that are left; None if unknown."""
    if at is None or at["seconds_left"] is None:
        return None
    least, most = at["seconds_left"]
    return round(0.5 * float(least + most), 1)


def _fields(job: tables.Job, judgement: JsonObject | None) -> JsonObject:
    return {
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "target": job.spec["target"],
        "dataset_id": job.dataset_id,
        "priority": job.priority,
        "attempt": job.attempt,
        "progress": {k: v for k, v in job.progress.items() if k != "timing"},
        # The clock of the database may differ by less than what is shown.
        "timing": timing(job, time.time()),
        "cancel_requested": job.cancel_requested_at is not None,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "error": job.error,
        "version": job.version,
        "verdict": verdict(judgement),
    }


_FIELDS = ("stage", "done", "seconds_left", "elapsed")


def timing(job: Job, now: float) -> JsonObject | None:
    """Returns stage, share done and seconds left of a job; None if it has ended.

    They are what its worker has last told, which it does every second.
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
        "seconds_left": None,
        "elapsed": round(max(now - since, 0.0), 1),
    }
