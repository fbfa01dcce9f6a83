"""The bodies of predictions, as OpenAPI documents them.

Of these classes only `Parameters` validates requests: pydantic would take longer for a
table than the prediction, so `service.predicting.table` reads tables.
"""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from service.predicting.codecs.codec import ARROW, CSV, JSON, PROGRESS
from service.predicting.query import SIGNATURES, Parameters
from tfbbb.base.types import JsonObject
from tfbbb.prediction.questions import Question, served_questions

_BINARY = {"schema": {"type": "string", "format": "binary"}}
# A row of the demo model.
_NAMES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
_PATIENT = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]

Value = float | bool | str | None


class PredictRequest(BaseModel):
    """Rows (`instances`) or columns (`inputs`) in the units of the training table."""

    # A type checker cannot read the names from a table.
    signature_name: Literal[SIGNATURES] = Field(  # type: ignore[valid-type]
        SIGNATURES[0], description="As clients of TensorFlow Serving give it."
    )
    instances: list[list[Value] | dict[str, Value]] | None = Field(
        None,
        description="Lists in the order of the features, or objects by feature name. "
        "`true` and `false` count as 1 and 0, `null` is a missing value.",
    )
    inputs: list[list[Value]] | dict[str, list[Value]] | None = Field(
        None, description="Columns by feature name, or a matrix of rows."
    )
    targets: list[Value | list[Value]] | None = Field(
        None,
        description="The target of each row, of which to return `log_prob`, in raw "
        "units or the name of a class; of several targets a list for each row.",
    )
    parameters: Parameters | None = None  # type: ignore[valid-type]


class RowMoments(BaseModel):
    """The predictive distribution of one row, of k targets or c classes.

    A regression has `mean`, `variance`, `std`, `epistemic` and `aleatoric`, a
    classification `class`, `probabilities`, `entropy` and
    `mutual_information`.
    """

    mean: list[float] | None = Field(None, description="E[y], per target.")
    variance: list[float] | None = Field(None, description="epistemic + aleatoric.")
    std: list[float] | None = Field(None, description="Square root of `variance`.")
    epistemic: list[float] | None = Field(
        None, description="Var(E[y | w]): the part that more data would remove."
    )
    aleatoric: list[float] | None = Field(
        None, description="E[Var(y | w)]: the part that more data would not remove."
    )
    class_: str | None = Field(
        None, alias="class", description="The most probable class."
    )
    probabilities: list[float] | None = Field(None, description="p(y = class).")
    entropy: float | None = Field(None, description="Of the probabilities, in nats.")
    mutual_information: float | None = Field(
        None, description="Of class and weights: the epistemic part of the entropy."
    )
    between_members: list[float] | None = Field(
        None, description="The part of `epistemic` between members of an ensemble."
    )
    mean_standard_error: list[float] | None = Field(
        None, description="Monte Carlo error of `mean` or `probabilities`."
    )
    familiarity: float | None = Field(
        None,
        description="Share of rows like those of the training that are at most as "
        "usual, from 0 to 1: 5 % of such rows have .05 or less.",
    )


def row_model(questions: Iterable[Question]) -> type[RowMoments]:
    """Returns the model of a row's prediction, with a field for each question."""
    fields: JsonObject = {
        output: (Any, Field(None, description=f"If requested: {question.text}."))
        for question in questions
        for output in question.outputs
    }
    return create_model(
        "RowPrediction", __base__=RowMoments, __doc__=RowMoments.__doc__, **fields
    )


RowPrediction = row_model(served_questions())


class PredictResponse(BaseModel):
    """`predictions` per row for `instances`, `outputs` as columns for `inputs`."""

    model_name: str
    model_version: str
    num_samples: int
    classes: list[str] | None = Field(
        None, description="The classes, in the order of `probabilities`."
    )
    targets: list[str] | None = Field(
        None, description="The names of several targets, in the order of `mean`."
    )
    calibration: dict[str, str] | None = Field(
        None,
        description="What calibrates the quantiles, intervals or prediction sets, with "
        "the number of held-out rows, or `none`.",
    )
    predictions: list[RowPrediction] | None = None  # type: ignore[valid-type]
    outputs: JsonObject | None = None


_EXAMPLES: JsonObject = {
    "Rows": {"value": {"instances": [_PATIENT]}},
    "Rows by name, with an interval": {
        "value": {
            "instances": [dict(zip(_NAMES, _PATIENT, strict=True))],
            "parameters": {"num_samples": 200, "intervals": [0.9]},
        }
    },
    "Rows with their targets": {"value": {"instances": [_PATIENT], "targets": [151]}},
}
TABLE_BODY: JsonObject = {
    "required": True,
    "content": {
        JSON: {
            "schema": {"$ref": "#/components/schemas/PredictRequest"},
            "examples": _EXAMPLES,
        },
        ARROW: _BINARY,
        CSV: _BINARY,
    },
}
TABLE_RESPONSE: JsonObject = {"content": dict.fromkeys((ARROW, CSV), _BINARY)}
FILE_NAME = {
    "name": "name",
    "in": "query",
    "schema": {"type": "string"},
    "description": "Name of the file, with which that of the answer begins.",
}
# Parameters of `:predict` whose answers no file has.
REFUSED_OF_FILES = ("targets", "return_samples", "signature_name")


def query_parameters(where: str, without: Collection[str] = ()) -> list[JsonObject]:
    """Returns the OpenAPI descriptions of the parameters in the URL."""
    listed = {
        "signature_name": f"One of {', '.join(SIGNATURES)}.",
        "targets": "Names of the columns that hold the targets, with commas between.",
    }
    for name, field in Parameters.model_fields.items():
        listed[name] = field.description or ""
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {"type": "string"},
            "description": f"{text} {where}; several levels have commas between.",
        }
        for name, text in listed.items()
        if name not in without
    ]


FILE_RESPONSE: JsonObject = {
    "description": "The file: its columns, then those of the predictions.",
    "content": {
        "application/octet-stream": _BINARY,
        PROGRESS: {
            "schema": {
                "type": "string",
                "format": "binary",
                "description": "Lines of JSON: `rows` of all `of`, `preview`, and at "
                "last `file` and its `num_bytes`, which follow, or an `error`.",
            }
        },
    },
}
