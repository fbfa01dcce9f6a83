"""The estimators of a spec, by the names of `tfbbb.estimators`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tfbbb.training.spec.part import Integer, NamedPart, from_name

EstimatorName = Literal["auto", "flipout", "local", "score_function", "weight"]
_DRAWS = "Number of draws in a training step."
NumSamples = Annotated[Integer, Field(ge=1, le=64, description=_DRAWS)]


class AutoEstimator(NamedPart):
    """The exact estimator of least variance: the default."""

    name: Literal["auto"] = "auto"


class LocalEstimator(NamedPart):
    """Draws pre-activations; for weights that are independent under q."""

    name: Literal["local"] = "local"
    num_samples: NumSamples = 1


class WeightEstimator(NamedPart):
    """Draws one matrix of weights for all rows of a step; for any q."""

    name: Literal["weight"] = "weight"
    num_samples: NumSamples = 1


class FlipoutEstimator(NamedPart):
    """One perturbation of the weights with random signs for every row."""

    name: Literal["flipout"] = "flipout"
    num_samples: NumSamples = 1


class ScoreFunctionEstimator(NamedPart):
    """Needs no gradient of the draws, at a far larger variance."""

    name: Literal["score_function"] = "score_function"
    num_samples: Annotated[Integer, Field(ge=2, le=64, description=_DRAWS)] = 2


_Estimator = Annotated[
    AutoEstimator
    | LocalEstimator
    | WeightEstimator
    | FlipoutEstimator
    | ScoreFunctionEstimator,
    Field(discriminator="name"),
]
Estimator = Annotated[
    _Estimator,
    BeforeValidator(from_name, json_schema_input_type=EstimatorName | _Estimator),
]
