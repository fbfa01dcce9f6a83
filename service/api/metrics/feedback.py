"""Metrics of feedback, from the database."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import select

from service.api.feedback.schemas import Drift, running_figures
from service.shared.database import Database
from service.shared.database.tables import Feedback, ModelVersion


class FeedbackMetrics(Collector):
    """The feedback about each version that is not deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: at registration the database may not answer yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Queries the database."""
        labels = ["model", "version"]
        rows = GaugeMetricFamily(
            "tfbbb_feedback_rows", "Rows of which feedback came.", labels=labels
        )
        figures = GaugeMetricFamily(
            "tfbbb_feedback_figure",
            "Mean of a score over the rows of which feedback came.",
            labels=[*labels, "figure"],
        )
        martingale = GaugeMetricFamily(
            "tfbbb_drift_martingale",
            "Test of drift; 20 raises an alarm, falsely in at most 5 % of versions.",
            labels=labels,
        )
        alarm = GaugeMetricFamily(
            "tfbbb_drift_alarm",
            "Whether the test of drift has ever raised an alarm.",
            labels=labels,
        )
        for row in self._rows():
            version = [row.name, str(row.number)]
            rows.add_metric(version, row.num_rows)
            for figure, (mean, _) in running_figures(row).items():
                figures.add_metric([*version, figure], mean)
            drift = Drift.from_record(row.drift)
            martingale.add_metric(version, drift.martingale)
            alarm.add_metric(version, drift.alarm)
        yield from (rows, figures, martingale, alarm)

    def _rows(self) -> Iterable[Feedback]:
        exists = (
            (ModelVersion.name == Feedback.name)
            & (ModelVersion.number == Feedback.number)
            & ModelVersion.deleted_at.is_(None)
        )
        statement = select(Feedback).join(ModelVersion, exists)
        with self._database.reading() as session:
            return session.scalars(statement).all()
