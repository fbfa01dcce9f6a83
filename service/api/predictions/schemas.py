"""The bodies of `:predict`, as OpenAPI documents them.

Only `Parameters` validates: the numbers of a table are read by `rows` and `columns`,
since a model of ten thousand of them would take longer than the prediction.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from service.shared.prediction_parameters import Parameters

Value = float | bool | str | None


class PredictRequest(BaseModel):
    """Rows (`instances`) or columns (`inputs`), in the units of the training table."""

    signature_name: Literal["serving_default", "predict", "quantiles", "sample"] = (
        Field(
            "serving_default",
            description="`quantiles` and `sample` answer nothing else.",
        )
    )
    instances: list[list[Value] | dict[str, Value]] | None = Field(
        None,
        description="Rows: lists in the order of the model's features, or objects by "
        "feature name, in which others are left aside. `true` and `false` count as 1 "
        "and 0. `null` is a missing value, in columns that may miss one.",
    )
    inputs: list[list[Value]] | dict[str, list[Value]] | None = Field(
        None, description="The same as columns by feature name, or as a matrix."
    )
    parameters: Parameters | None = None


class RowPrediction(BaseModel):
    """The predictive distribution of one row, of k targets or c classes.

    A regression has `mean`, `variance`, `epistemic` and `aleatoric`, a classification
    `class`, `probabilities`, `entropy` and `mutual_information`.
    """

    mean: list[float] | None = Field(None, description="E[y], per target.")
    variance: list[float] | None = Field(None, description="epistemic + aleatoric.")
    epistemic: list[float] | None = Field(
        None, description="Var(E[y | w]): what more data would remove."
    )
    aleatoric: list[float] | None = Field(
        None, description="E[Var(y | w)]: what it would not."
    )
    class_: str | None = Field(None, alias="class", description="The likeliest.")
    probabilities: list[float] | None = Field(None, description="p(y = class).")
    entropy: float | None = Field(None, description="Of the probabilities, in nats.")
    mutual_information: float | None = Field(
        None, description="Of class and weights, in nats: the epistemic part."
    )
    between_members: list[float] | None = Field(
        None, description="The part of `epistemic` between members of an ensemble."
    )
    mean_standard_error: list[float] | None = Field(
        None, description="Monte Carlo error of `mean` or `probabilities`."
    )
    quantiles: list[list[float]] | None = Field(
        None, description="If asked for, `[level][target]`."
    )
    samples: list[list[float] | int] | None = Field(
        None, description="If asked for, `[draw][target]`, or the index of a class."
    )


class PredictResponse(BaseModel):
    """`predictions` per row if `instances` were sent, else `outputs` as columns."""

    predictions: list[RowPrediction] | None = None
    outputs: dict[str, Any] | None = None
    model_name: str = Field(examples=["diabetes"])
    model_version: str = Field(examples=["1"])
    num_samples: int = Field(examples=[100])
    classes: list[str] | None = Field(
        None, description="In the order of the probabilities.", examples=[None]
    )


def request_body() -> dict[str, Any]:
    """OpenAPI's description of the body, with examples that the demo model answers."""
    patient = [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]
    names = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    examples = {
        "Rows": {"instances": [patient]},
        "Rows by name, with an interval": {
            "instances": [dict(zip(names, patient, strict=True))],
            "parameters": {"num_samples": 200, "quantiles": [0.05, 0.95]},
        },
        "Columns": {
            "inputs": {
                name: [value] for name, value in zip(names, patient, strict=True)
            }
        },
    }
    schema = PredictRequest.model_json_schema()
    # Beside the paths, nothing could refer to definitions inside a body.
    schema["properties"]["parameters"]["anyOf"][0] = schema.pop("$defs")["Parameters"]
    return {
        "required": True,
        "content": {
            "application/json": {
                "schema": schema,
                "examples": {
                    name: {"value": value} for name, value in examples.items()
                },
            }
        },
    }
