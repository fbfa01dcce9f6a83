"""A prediction request, as the codecs read it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from service.shared.errors import InvalidRequest
from service.shared.prediction_parameters import SIGNATURES, DrawParameters, Parameters
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import abbreviate
from tfbbb.base.validation_errors import describe_validation_error, field_path
from tfbbb.prediction import questions
from tfbbb.prediction.questions import Question

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
    """Raises `InvalidRequest` for a signature that does not predict.

    Clients of TensorFlow Serving name one; none, or an empty one, is the default.
    """
    if name not in ("", None, *SIGNATURES):
        raise InvalidRequest(
            f"`signature_name` must be one of {', '.join(SIGNATURES)}. "
            f"Received: {abbreviate(name)}"
        )


def read_text_parameters(given: Mapping[str, object]) -> DrawParameters:
    """Reads parameters that are texts, numbers or booleans: levels as `"0.05,0.95"`."""
    asked = [x for x in questions.served_questions() if x.takes_levels]
    levels = {question.parameter for question in asked}
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
