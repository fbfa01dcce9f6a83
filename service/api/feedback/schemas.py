"""The bodies of `/v1/models/NAME/feedback`."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, Field

from service.api.predictions.schemas import Value
from service.shared.database.tables import Feedback
from service.shared.json_types import JsonObject

_MOST_LOG = 700.0


class FeedbackRequest(BaseModel):
    """Rows with their targets."""

    instances: list[list[Value] | dict[str, Value]] | None = Field(
        None, description="Rows, as for `:predict`."
    )
    inputs: list[list[Value]] | dict[str, list[Value]] | None = Field(
        None, description="Columns, as for `:predict`."
    )
    targets: list[Value | list[Value]] = Field(
        description="What came true for each row: a number in raw units, a list of "
        "numbers for several targets, or the name of a class."
    )


class FeedbackAnswer(BaseModel):
    """The rows that were counted, and the version that they scored."""

    model_name: str = Field(examples=["diabetes"])
    model_version: str = Field(examples=["2"])
    num_rows: int = Field(examples=[3])


class RunningFigure(BaseModel):
    """The mean of a score over the rows of feedback."""

    mean: float = Field(examples=[0.91])
    standard_error: float | None = Field(
        description="Of the mean, if rows are independent; `null` for one row.",
        examples=[0.02],
    )
    held_out: float | None = Field(
        description="The same figure on the rows held out in training, if it is known.",
        examples=[0.9],
    )


class Drift(BaseModel):
    """A sequential test of whether the rows still come like those held out.

    The martingale is 1 at first, and reaches the threshold with a probability of at
    most `false_alarm_rate`, ever, while rows do not drift.
    """

    martingale: float = Field(examples=[0.4])
    greatest: float = Field(
        description="Greatest value of the martingale so far.", examples=[1.3]
    )
    threshold: float = Field(description="Value of an alarm.", examples=[20.0])
    alarm: bool = Field(examples=[False])
    alarm_row: int | None = Field(
        description="Number of the row of feedback that raised the alarm.",
        examples=[None],
    )
    alarm_at: datetime | None = Field(examples=[None])
    false_alarm_rate: float = Field(examples=[0.05])
    reference_rows: int = Field(
        description="Held-out rows that the rows are compared with. If there are none, "
        "rows are compared with earlier feedback only.",
        examples=[88],
    )

    @classmethod
    def from_record(cls, drift: JsonObject) -> Self:
        """Creates the answer from the column `drift` of the database."""
        at = drift["alarm_at"]
        return cls(
            martingale=_exp(drift["log_martingale"]),
            greatest=_exp(drift["log_greatest"]),
            threshold=round(_exp(drift["log_threshold"]), 9),
            alarm=drift["alarm_row"] is not None,
            alarm_row=drift["alarm_row"],
            alarm_at=None if at is None else datetime.fromtimestamp(at, UTC),
            false_alarm_rate=drift["false_alarm_rate"],
            reference_rows=drift["reference_rows"],
        )


class VersionFeedback(BaseModel):
    """How a version predicted the rows of which feedback came."""

    model_name: str = Field(examples=["diabetes"])
    model_version: str = Field(examples=["2"])
    num_rows: int = Field(0, examples=[120])
    started_at: datetime | None = Field(None, description="Time of the first feedback.")
    updated_at: datetime | None = Field(
        None, description="Time of the latest feedback."
    )
    figures: dict[str, RunningFigure] = Field(
        {},
        description="`log_likelihood` in nats; `coverage_50`, `coverage_90` and "
        "`coverage_95`; of numbers `crps`, `rmse` and `mean_absolute_error`; of "
        "classes `accuracy` and `brier_score`.",
    )
    drift: Drift | None = Field(None, description="`null` before the first feedback.")

    @classmethod
    def from_row(
        cls, name: str, number: int, row: Feedback | None, held_out: Mapping[str, float]
    ) -> Self:
        """Creates the answer from a row of the database."""
        version = {"model_name": name, "model_version": str(number)}
        if row is None:
            return cls(**version)
        return cls(
            **version,
            num_rows=row.num_rows,
            started_at=datetime.fromtimestamp(row.started_at, UTC),
            updated_at=datetime.fromtimestamp(row.updated_at, UTC),
            figures={
                figure: RunningFigure(
                    mean=mean, standard_error=error, held_out=held_out.get(figure)
                )
                for figure, (mean, error) in running_figures(row).items()
            },
            drift=Drift.from_record(row.drift),
        )


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


def _exp(log: float) -> float:
    """Returns a number that JSON can hold."""
    return math.exp(min(log, _MOST_LOG))


def request_body() -> JsonObject:
    """Returns the OpenAPI description of the body, with examples for the demo model."""
    patient = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]
    examples = {"Rows": {"value": {"instances": [patient], "targets": [151]}}}
    schema = FeedbackRequest.model_json_schema()
    content = {"application/json": {"schema": schema, "examples": examples}}
    return {"required": True, "content": content}
