"""Metrics of jobs, from the database."""

from collections.abc import Iterable

import sqlalchemy
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Job
from service.shared.job_state import ENDED, JobState

_SECONDS = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 86400)


class JobMetrics(Collector):
    """The jobs in the database, which all processes of a service share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: at registration the database may not answer yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Queries the database."""
        with self._database.reading() as session:
            yield self._states(session)
            yield self._waiting(session)
            yield from self._durations(session)

    def _states(self, session: Session) -> Metric:
        by_state = sqlalchemy.select(Job.state, func.count()).group_by(Job.state)
        counts = {row[0]: row[1] for row in session.execute(by_state)}
        family = GaugeMetricFamily(
            "tfbbb_jobs",
            "Jobs by state; `queued` is the length of the queue.",
            labels=["state"],
        )
        for state in JobState:
            family.add_metric([state], counts.get(state, 0))
        return family

    def _waiting(self, session: Session) -> Metric:
        oldest = session.scalar(
            sqlalchemy.select(func.min(Job.created_at)).where(
                Job.state == JobState.QUEUED
            )
        )
        age = 0.0 if oldest is None else self._database.now(session) - oldest
        return GaugeMetricFamily(
            "tfbbb_job_oldest_queued_seconds", "Age of the oldest queued job.", age
        )

    def _durations(self, session: Session) -> Iterable[Metric]:
        took = Job.finished_at - Job.started_at
        within = [func.count().filter(took <= seconds) for seconds in _SECONDS]
        rows = session.execute(
            sqlalchemy.select(Job.state, *within, func.count(), func.sum(took))
            .where(Job.state.in_(ENDED), took.is_not(None))
            .group_by(Job.state)
        )
        family = HistogramMetricFamily(
            "tfbbb_job_duration_seconds",
            "Time from the first start of a job to its end.",
            labels=["state"],
        )
        for state, *counts, total, seconds in rows:
            bounds = [*map(str, map(float, _SECONDS)), "+Inf"]
            buckets = list(zip(bounds, [*counts, total], strict=True))
            family.add_metric([state], buckets, seconds)
        yield family
