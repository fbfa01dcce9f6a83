"""A prediction request, as the codecs read it, and its parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, create_model

from service.shared.errors import InvalidRequest
from tfbbb.base.known_fields import KnownFields
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonObject
from tfbbb.base.validation_errors import describe_validation_error, field_path
from tfbbb.prediction.levels import refuse_percentage
from tfbbb.prediction.questions import Question, served_questions

# What clients of TensorFlow Serving may name; both return the moments.
SIGNATURES = ("serving_default", "predict")

Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Time = Annotated[float, Field(allow_inf_nan=False)]
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
            kind: Any = Level
            text = f"Levels of the {question.text} of p(y | x) to return{classes}."
            example = [0.05, 0.95]
            if question.takes_times:
                kind, example = Time, [30.0, 365.0]
                text = "Times t, or other numbers in units of the target, of which to "
                text += f"return P(y > t){classes}."
            fields[question.parameter] = (
                Annotated[list[kind], Field(fail_fast=True)] | None,
                Field(
                    None,
                    min_length=1,
                    max_length=100,
                    description=text,
                    examples=[example],
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

_MOST_CHARACTERS = 100


@dataclass(frozen=True)
class Query:
    """A prediction request, before it is validated against a model.

    Either `rows`, the value of `instances`, or `columns`, the value of `inputs` or an
    Arrow table, is not None.
    """

    rows: object
    columns: object
    parameters: DrawParameters
    targets: object

    def asks(self, question: Question) -> bool:
        """Whether the request asks the question."""
        if question.takes_targets:
            return self.targets is not None
        return self.parameters.asks(question)

    @property
    def num_rows(self) -> int:
        """The number of rows, before the table is read; 0 if it is no table."""
        if self.by_rows:
            return len(self.rows) if isinstance(self.rows, list) else 0
        if isinstance(self.columns, pa.Table):
            return int(self.columns.num_rows)
        parts = (
            self.columns.values() if isinstance(self.columns, dict) else [self.columns]
        )
        return max(
            (len(x) for x in parts if isinstance(x, list | np.ndarray)), default=0
        )

    @property
    def by_rows(self) -> bool:
        """Whether the response has one object per row, rather than columns."""
        return self.columns is None


def check_signature(name: object) -> None:
    """Raises `InvalidRequest` for a signature that does not predict."""
    if name not in ("", None, *SIGNATURES):
        raise InvalidRequest(
            f"`signature_name` must be one of {', '.join(SIGNATURES)}. "
            f"Received: {abbreviate(name)}"
        )


def read_options(given: Mapping[str, object]) -> tuple[DrawParameters, object]:
    """Reads options that are texts; returns parameters, and what names the targets."""
    options = dict(given)
    check_signature(options.pop("signature_name", None))
    targets = options.pop("targets", None)
    return read_text_parameters(options), targets


def read_text_parameters(given: Mapping[str, object]) -> DrawParameters:
    """Reads parameters that are texts, numbers or booleans: levels as `"0.05,0.95"`."""
    levels = {x.parameter for x in served_questions() if x.takes_levels}
    lists = {name: str(given[name]).split(",") for name in levels & given.keys()}
    return read_parameters({**given, **lists}, strict=False)


def read_parameters(parameters: object, *, strict: bool = True) -> DrawParameters:
    """Validates the value of `parameters`."""
    if parameters is None:
        return Parameters()
    try:
        return Parameters.model_validate(parameters, strict=strict)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            place = f"parameters.{first['loc'][0]}"[:_MOST_CHARACTERS]
            known = Parameters.model_fields
            asked = did_you_mean(place, (f"parameters.{name}" for name in known))
            raise InvalidRequest(
                f"`{place}` is unknown.{asked} The parameters are {', '.join(known)}.",
                place,
            ) from None
        within = ["parameters"]
        raise InvalidRequest(
            describe_validation_error(first, within), field_path(first, within)
        ) from None
