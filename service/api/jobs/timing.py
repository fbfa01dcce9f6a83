"""What a job is at, and how long it takes yet."""

from service.shared.database.tables import Job
from service.shared.job_state import ENDED, JobState
from service.shared.json_types import JsonObject
from tfbbb.training.job_clock import LOADING, WAITING

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
