"""Feedback in the database."""

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from sqlalchemy import select

from service.predicting.scores import ScoredRows
from service.shared.database import Database
from service.shared.database.tables import Feedback, ModelVersion
from service.shared.errors import UnknownModel
from tfbbb.base.types import JsonObject
from tfbbb.judging.drift import FALSE_ALARM_RATE, DriftTest
from tfbbb.judging.drift_reference import DriftReference, drift_scores


def count(database: Database, models: Path, name: str, scored: ScoredRows) -> None:
    """Counts scored rows in one transaction, all of them or none."""
    # Read before the transaction: the disk may be slow, and others wait for the locks.
    reference = None
    if find(database, name, scored.version) is None:
        reference = DriftReference.read(models / name / str(scored.version))
    with database.writing() as session:
        now = database.now(session)
        # Serialises the feedback about the version.
        version = session.get(
            ModelVersion, (name, scored.version), with_for_update=True
        )
        if version is None or version.deleted_at is not None:
            raise UnknownModel(
                f"Version {scored.version} of the model {name!r} was deleted."
            )
        row = session.get(Feedback, (name, scored.version), populate_existing=True)
        if row is None:
            row = Feedback(name=name, number=scored.version, started_at=now)
            _start(row, reference, scored)
            session.add(row)
        _add(row, scored, now)
        row.updated_at = now


def find(database: Database, name: str, number: int) -> Feedback | None:
    """Returns the feedback about a version, or None."""
    with database.reading() as session:
        return session.get(Feedback, (name, number))


def find_drifted(
    database: Database, name: str | None = None
) -> defaultdict[str, list[int]]:
    """Returns the versions with an alarm of drift, of one model or of all, by model."""
    query = select(Feedback.name, Feedback.number, Feedback.drift)
    if name is not None:
        query = query.where(Feedback.name == name)
    found = defaultdict[str, list[int]](list)
    with database.reading() as session:
        for model, number, drift in session.execute(query.order_by(Feedback.number)):
            if drift["alarm"]:
                found[model].append(number)
    return found


def running_figures(row: Feedback) -> dict[str, tuple[float, float | None]]:
    """Returns the mean and the standard error of each figure of a version."""
    figures = {}
    for name, values in row.figures.items():
        count, mean, error = values["count"], values["mean"], None
        if count > 1:
            error = math.sqrt(values["squares"] / (count - 1) / count)
        if name == "squared_error":
            # The derivative of the root gives the error.
            name, mean = "rmse", math.sqrt(mean)
            error = None if error is None or mean == 0 else error / (2 * mean)
        figures[name] = (mean, error)
    return figures


# Of numbers, the scores that are no figure: the probability integral transform.
_PIT = "pit"
# JSON can hold its exponential.
_MOST_LOG = 700.0


def _start(row: Feedback, reference: DriftReference | None, scored: ScoredRows) -> None:
    """Sets the figures of a version before its first feedback."""
    row.num_rows, row.figures = 0, {}
    width = 2 if _PIT in scored.scores else 1
    scores = np.zeros((0, width)) if reference is None else reference.scores
    row.drift = {"reference_rows": len(scores), "alarm_at": None}
    row.drift_test = DriftTest.start(scores).to_dict()


def _add(row: Feedback, scored: ScoredRows, now: float) -> None:
    """Adds rows to the figures of a version."""
    scores = {name: np.asarray(values) for name, values in scored.scores.items()}
    row.num_rows += scored.num_rows
    row.figures = {
        name: _add_to_mean(row.figures.get(name), values)
        for name, values in scores.items()
        if name != _PIT
    }
    test = DriftTest.from_dict(row.drift_test)
    test = test.update(drift_scores(scores["log_likelihood"], scores.get(_PIT)))
    is_alarm = test.alarm_row is not None
    row.drift_test = test.to_dict()
    row.drift = {
        "martingale": math.exp(min(test.log_value, _MOST_LOG)),
        "greatest": math.exp(min(test.log_greatest, _MOST_LOG)),
        "threshold": 1.0 / FALSE_ALARM_RATE,
        "alarm": is_alarm,
        "alarm_row": test.alarm_row,
        "alarm_at": row.drift["alarm_at"] or (now if is_alarm else None),
        "false_alarm_rate": FALSE_ALARM_RATE,
        "reference_rows": row.drift["reference_rows"],
    }


def _add_to_mean(before: JsonObject | None, values: np.ndarray) -> JsonObject:
    """Adds values to a mean and the sum of the squared differences from it.

    Chan, Golub and LeVeque (1983).
    """
    old = before or {"count": 0, "mean": 0.0, "squares": 0.0}
    count, added = old["count"] + len(values), len(values)
    distance = float(np.mean(values)) - old["mean"]
    return {
        "count": count,
        "mean": old["mean"] + distance * added / count,
        "squares": old["squares"]
        + float(np.var(values)) * added
        + distance**2 * old["count"] * added / count,
    }
