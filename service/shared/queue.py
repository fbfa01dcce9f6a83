"""The queue of jobs: leases, and every change of a job's state."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from service.shared import job_events as events
from service.shared.database import Database
from service.shared.database.tables import Dataset, Job, Key
from service.shared.files import JobFiles, last_line
from service.shared.job_state import ACTIVE, ENDED, JobState
from service.shared.settings import Settings
from service.shared.store import open_store
from service.shared.versions import published_version
from tfbbb.base.types import JsonObject

logger = logging.getLogger(__name__)

MOST_DEATHS = 3
# Pauses before the next attempt of a job whose process died, and of one whose machine
# failed, by its earlier deaths.
_PAUSES, _PAUSES_OF_MACHINES = (1.0, 5.0, 0.0), (5.0, 60.0, 0.0)
# Most attempts that are submitted to a cluster at a time.
_CANDIDATES = 50
# The end of a log, with room for its last line.
_OUTPUT_BYTES = 2**14


@dataclass(frozen=True)
class Lease:
    """The right to run an attempt of a job, and to record its results.

    It ends when the job ends, returns to the queue, or is leased again.
    """

    job_id: str
    attempt: int

    def __str__(self) -> str:
        return f"attempt {self.attempt} of job {self.job_id}"


class StaleAttemptError(Exception):
    """The lease has ended; nothing was written."""


class Queue:
    """The queue of jobs, shared by all processes on one database.

    Every method is one transaction, or joins the caller's.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.store = open_store(settings)

    def submit(self, session: Session, job: Job) -> None:
        """Adds a new job, in the caller's transaction."""
        session.add(job)
        session.flush()
        self._set_state(session, job, JobState.QUEUED, job.created_at)

    def has_work(self) -> bool:
        """Returns whether a queued job could be leased; takes no lock."""
        with self.database.reading() as session:
            now = self.database.now(session)
            return session.scalar(self._waiting(now).limit(1)) is not None

    def lease(self) -> Lease | None:
        """Leases the next job, by priority, then age."""
        with self.database.writing() as session:
            now = self.database.now(session)
            waiting = self._waiting(now).limit(1)
            job_id = session.scalar(waiting.with_for_update(skip_locked=True))
            if job_id is None:
                return None
            job = session.get_one(Job, job_id)
            if job.key_id is not None and self.settings.job_slots_per_key is not None:
                # Of two workers, the second one counts the job of the first.
                session.get(Key, job.key_id, with_for_update=True)
                if job_id not in session.scalars(self._waiting(now)).all():
                    return None
            return self._begin_attempt(session, job)

    def lease_job(self, job_id: str) -> Lease | None:
        """Leases one job, if it is queued."""
        with self.database.writing() as session:
            job = session.get(Job, job_id, with_for_update=True)
            if job is None or job.state != JobState.QUEUED:
                return None
            return self._begin_attempt(session, job)

    def next_attempts(self) -> list[Lease]:
        """Returns some attempts that could begin now, without leasing them."""
        with self.database.reading() as session:
            waiting = self._waiting(self.database.now(session)).limit(_CANDIDATES)
            jobs = [session.get_one(Job, job_id) for job_id in session.scalars(waiting)]
            return [Lease(job.id, job.attempt + 1) for job in jobs]

    def lock_job(self, session: Session, lease: Lease) -> Job:
        """Locks and returns the job of a lease, in the caller's transaction."""
        job = session.get(
            Job, lease.job_id, with_for_update=True, populate_existing=True
        )
        if not _is_valid(job, lease):
            raise StaleAttemptError(f"{lease} has ended")
        return job

    def heartbeat(
        self,
        lease: Lease,
        progress: JsonObject | None = None,
        epochs: Sequence[JsonObject] = (),
        timing: JsonObject | None = None,
    ) -> bool:
        """Renews a lease, and records the progress of its job."""
        with self.database.writing() as session:
            job = self.lock_job(session, lease)
            now = self.database.now(session)
            self._extend(job, now)
            told = int(job.progress.get("told_epoch", 0))
            for epoch in epochs:
                # An attempt that resumes from a checkpoint repeats later epochs.
                if epoch["epoch"] > told:
                    events.append(session, job, "epoch", epoch, now)
                    told = epoch["epoch"]
            if progress is not None:
                if _has_advanced(job.progress, progress):
                    job.deaths = 0
                job.progress = {**job.progress, **progress, "told_epoch": told}
            if timing is not None:
                self._record_timing(session, job, timing, now)
            return job.cancel_requested_at is not None

    def is_active(self, lease: Lease) -> bool:
        """Returns whether a lease is valid; takes no lock."""
        with self.database.reading() as session:
            return _is_valid(session.get(Job, lease.job_id), lease)

    def begin_export(self, lease: Lease) -> None:
        """Records that training is done: `running → exporting`."""
        with self.database.writing() as session:
            job, now = self.lock_job(session, lease), self.database.now(session)
            self._set_state(session, job, JobState.EXPORTING, now)

    def succeed(self, session: Session, job: Job, version: int) -> None:
        """Records the published version, in the caller's transaction."""
        job.version = version
        self._end(session, job, JobState.SUCCEEDED, None)

    def fail(self, lease: Lease, reason: str) -> None:
        """Records that the job failed: `→ failed`."""
        with self.database.writing() as session:
            job = self.lock_job(session, lease)
            if not self._succeed_if_published(session, job):
                self._end(session, job, JobState.FAILED, reason)

    def release(self, lease: Lease, reason: str) -> None:
        """Ends an attempt without fault of the job, and requeues or cancels the job."""
        with self.database.writing() as session:
            self._requeue(session, self.lock_job(session, lease), reason)

    def record_death(
        self, lease: Lease, reason: str | None = None, *, of_machine: bool = False
    ) -> None:
        """Requeues a job whose process died, or whose machine failed.

        The third time without progress, the job fails.
        """
        with self.database.writing() as session:
            job = self.lock_job(session, lease)
            if reason is None:
                reason = self._describe_end(job, "was killed or crashed")
            pauses = _PAUSES_OF_MACHINES if of_machine else _PAUSES
            self._count_death(session, job, reason, pauses[job.deaths])

    def expire(self) -> int:
        """Ends attempts whose leases have expired, as deaths; returns their number."""
        with self.database.writing() as session:
            is_over = Job.lease_expires_at < self.database.now(session)
            expired = select(Job).where(Job.state.in_(ACTIVE), is_over)
            jobs = session.scalars(expired.with_for_update(skip_locked=True)).all()
            silence = f"sent no heartbeat for {self.settings.lease_seconds:g} s"
            for job in jobs:
                self._count_death(session, job, self._describe_end(job, silence))
            return len(jobs)

    def cancel(self, session: Session, job: Job) -> None:
        """Cancels a locked job: at once, or when its process has stopped."""
        now = self.database.now(session)
        if job.state == JobState.QUEUED:
            job.cancel_requested_at = now
            self._end(session, job, JobState.CANCELLED, None)
        elif job.state in ACTIVE and job.cancel_requested_at is None:
            job.cancel_requested_at = now

    def retry(self, session: Session, job: Job) -> None:
        """Queues a failed or cancelled job again, in the caller's transaction."""
        job.deaths, job.progress = 0, {}
        job.error = job.finished_at = job.started_at = None
        job.cancel_requested_at = job.not_before = None
        self._set_state(session, job, JobState.QUEUED, self.database.now(session))

    def newest_upload(self) -> float:
        """Returns when the newest dataset was uploaded; 0 without any."""
        with self.database.reading() as session:
            return session.scalar(select(func.max(Dataset.created_at))) or 0.0

    def _record_timing(
        self, session: Session, job: Job, timing: JsonObject, now: float
    ) -> None:
        before: JsonObject = job.progress.get("timing") or {}
        # A new attempt begins anew, but the share that is done never falls.
        done = max(timing["done"], before.get("done", 0.0))
        timing = {**timing, "done": done, "attempt": job.attempt}
        named = [each.get("stage") for each in (before, timing)]
        if named[0] != named[1] or before.get("attempt") != job.attempt:
            events.append(session, job, "stage", timing, now)
        job.progress = {**job.progress, "timing": timing}

    def _waiting(self, now: float) -> Select[str]:
        """Selects the queued jobs that may begin, in their order."""
        order = Job.priority.desc(), Job.created_at, Job.id
        ready = or_(Job.not_before.is_(None), Job.not_before <= now)
        waiting = select(Job.id).where(Job.state == JobState.QUEUED, ready)
        most = self.settings.job_slots_per_key
        if most is not None:
            # Those of a key that run come first, then its queued ones in their order.
            runs = Job.state.in_(ACTIVE)
            place = func.row_number().over(
                partition_by=Job.key_id, order_by=(runs.desc(), *order)
            )
            places = (
                select(Job.id, place.label("place"))
                .where(or_(runs, and_(Job.state == JobState.QUEUED, ready)))
                .subquery()
            )
            allowed = select(places.c.id).where(places.c.place <= most)
            waiting = waiting.where(or_(Job.key_id.is_(None), Job.id.in_(allowed)))
        return waiting.order_by(*order)

    def _begin_attempt(self, session: Session, job: Job) -> Lease:
        now = self.database.now(session)
        job.attempt += 1
        self._extend(job, now)
        job.not_before = None
        job.started_at = job.started_at or now
        self._set_state(session, job, JobState.RUNNING, now)
        return Lease(job.id, job.attempt)

    def _extend(self, job: Job, now: float) -> None:
        job.lease_expires_at = now + self.settings.lease_seconds

    def _count_death(
        self, session: Session, job: Job, reason: str, pause: float = 0.0
    ) -> None:
        job.deaths += 1
        if job.deaths < MOST_DEATHS or job.cancel_requested_at is not None:
            self._requeue(session, job, reason, pause)
        elif not self._succeed_if_published(session, job):
            reason = f"{job.deaths} attempts came to nothing, the last one: {reason}"
            self._end(session, job, JobState.FAILED, reason)

    def _describe_end(self, job: Job, how: str) -> str:
        """Describes the end of an attempt whose process can no longer tell it."""
        line = last_line(JobFiles(self.settings, job.id).log_tail(_OUTPUT_BYTES))
        log = "" if line is None else f"; the last line of its log: {line}"
        return f"the process of attempt {job.attempt} {how}{log}"

    def _requeue(
        self, session: Session, job: Job, reason: str, pause: float = 0.0
    ) -> None:
        if self._succeed_if_published(session, job):
            return
        if job.cancel_requested_at is not None:
            self._end(session, job, JobState.CANCELLED, None)
            return
        now = self.database.now(session)
        job.lease_expires_at = None
        job.not_before = now + pause if pause else None
        self._set_state(session, job, JobState.QUEUED, now, reason)

    def _succeed_if_published(self, session: Session, job: Job) -> bool:
        """Ends an exporting job whose version is already published as succeeded."""
        if job.state != JobState.EXPORTING:
            return False
        now = self.database.now(session)
        version = published_version(session, self.store, job, now)
        if version is not None:
            self.succeed(session, job, version)
        return version is not None

    def _end(
        self, session: Session, job: Job, state: JobState, reason: str | None
    ) -> None:
        now = self.database.now(session)
        job.error, job.finished_at = reason, now
        job.lease_expires_at = None
        self._set_state(session, job, state, now, reason)

    def _set_state(
        self,
        session: Session,
        job: Job,
        state: JobState,
        now: float,
        reason: str | None = None,
    ) -> None:
        job.state = state
        data: JsonObject = {"state": state, "attempt": job.attempt}
        if reason is not None:
            data["reason"] = reason
        if state == JobState.SUCCEEDED:
            data |= {"name": job.name, "version": job.version}
        events.append(session, job, "state", data, now)
        if state in ENDED:
            logger.info("job %s %s%s", job.id, state, f": {reason}" if reason else "")


def _is_valid(job: Job | None, lease: Lease) -> TypeGuard[Job]:
    return job is not None and job.attempt == lease.attempt and job.state in ACTIVE


def _has_advanced(before: JsonObject, after: JsonObject) -> bool:
    """Returns whether a new process would resume at a later step than before."""
    return int(after.get("saved_step", 0)) > int(before.get("saved_step", 0))
