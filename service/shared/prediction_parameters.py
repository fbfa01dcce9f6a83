"""The parameters of a prediction request."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, create_model

from service.shared.json_types import JsonObject
from tfbbb.base.known_fields import KnownFields
from tfbbb.prediction.levels import refuse_percentage
from tfbbb.prediction.questions import Question, served_questions

# What clients of TensorFlow Serving may name; both return the moments.
SIGNATURES = ("serving_default", "predict")

Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Level = Annotated[float, Field(gt=0, lt=1), BeforeValidator(refuse_percentage)]


Method = Literal["auto", "local", "weight", "linearised"]


class DrawParameters(KnownFields):
    """Parameters about the draws."""

    model_config = ConfigDict(strict=True, frozen=True)

    num_samples: Annotated[Int32, Field(ge=2)] | None = Field(
        None, description="Number of draws of the weights; the model's by default."
    )
    seed: Int32 | None = Field(
        None, description="Seed of the draws; the model's by default."
    )
    method: Method | None = Field(
        None,
        description="How to predict: `auto`, which is the method of the export, or "
        "another that the export has, such as `weight`.",
        examples=["weight"],
    )

    deadline_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = Field(
        None,
        description="Milliseconds after which the response is of no use. A request "
        "that would take longer gets 503 at once.",
    )

    def asks(self, question: Question) -> bool:
        """Whether the request asks the question."""
        return bool(getattr(self, question.parameter, None))

    def levels(self, question: Question) -> list[float] | None:
        """Returns the levels of a question; None if it takes none or is not asked."""
        levels: list[float] | None = None
        if question.takes_levels:
            levels = getattr(self, question.parameter)
        return levels


def parameters_model(questions: Iterable[Question]) -> type[DrawParameters]:
    """Returns the model of `parameters`, with a field for each question."""
    fields: JsonObject = {}
    for question in questions:
        if question.takes_targets:
            # Targets stand beside the rows.
            continue
        if question.takes_levels:
            classes = "; not for classes" if question.needs_order else ""
            if question.needs_classes:
                classes = "; only for classes"
            fields[question.parameter] = (
                Annotated[list[Level], Field(fail_fast=True)] | None,
                Field(
                    None,
                    min_length=1,
                    max_length=100,
                    description=f"Levels of the {question.text} of "
                    f"p(y | x) to return{classes}.",
                    examples=[[0.05, 0.95]],
                ),
            )
        else:
            text = f"Whether to return the {question.text} too."
            fields[question.parameter] = (bool, Field(False, description=text))
    return create_model(
        "Parameters",
        __base__=DrawParameters,
        __doc__="Parameters that extend TensorFlow Serving's format.",
        **fields,
    )


Parameters = parameters_model(served_questions())
