"""The parameters of a prediction request."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from tfbbb.known_fields import KnownFields
from tfbbb.prediction.levels import single_precision_level

SIGNATURES = ("serving_default", "predict", "quantiles", "sample")

Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Level = Annotated[float, Field(gt=0, lt=1), AfterValidator(single_precision_level)]


class Parameters(KnownFields):
    """Parameters that extend TensorFlow Serving's format."""

    model_config = ConfigDict(strict=True, frozen=True)

    num_samples: Annotated[Int32, Field(ge=2)] | None = Field(
        None, description="Number of draws of the weights; the model's by default."
    )
    seed: Int32 | None = Field(
        None, description="Seed of the draws; the model's by default."
    )
    quantiles: Annotated[list[Level], Field(fail_fast=True)] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Levels of the quantiles of p(y | x) to return, from 1.2e-38 to "
        "0.99999994; not for classes.",
        examples=[[0.05, 0.95]],
    )
    return_samples: bool = Field(
        False, description="Whether to return the draws of y too."
    )
