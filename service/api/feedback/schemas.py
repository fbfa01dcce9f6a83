"""The bodies of `/v1/models/NAME/feedback`."""

from datetime import datetime

from pydantic import BaseModel, Field

from service.api.predictions.schemas import Value
from tfbbb.base.types import JsonObject


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

    model_name: str
    model_version: str
    num_rows: int


class RunningFigure(BaseModel):
    """The mean of a score over the rows of feedback."""

    mean: float
    standard_error: float | None = Field(
        description="Of the mean, if rows are independent; `null` for one row."
    )
    held_out: float | None = Field(
        description="The same figure on the rows held out in training, if it is known."
    )


class Drift(BaseModel):
    """A sequential test of whether the rows still come like those held out.

    The martingale is 1 at first, and reaches the threshold with a probability of at
    most `false_alarm_rate`, ever, while rows do not drift.
    """

    martingale: float
    greatest: float = Field(description="Greatest value of the martingale so far.")
    threshold: float = Field(description="Value of an alarm.")
    alarm: bool
    alarm_row: int | None = Field(
        description="Number of the row of feedback that raised the alarm."
    )
    alarm_at: datetime | None
    false_alarm_rate: float
    reference_rows: int = Field(
        description="Held-out rows that the rows are compared with. If there are none, "
        "rows are compared with earlier feedback only."
    )


class VersionFeedback(BaseModel):
    """How a version predicted the rows of which feedback came."""

    model_name: str
    model_version: str
    num_rows: int = 0
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


# A row of the demo model.
_ROW = {
    "instances": [[59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]],
    "targets": [151],
}
FEEDBACK_BODY: JsonObject = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/FeedbackRequest"},
            "examples": {"Rows": {"value": _ROW}},
        }
    },
}
