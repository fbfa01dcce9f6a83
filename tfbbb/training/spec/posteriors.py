"""The variational families of a spec, by the names of `tfbbb.posteriors`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tfbbb.training.spec.part import Integer, NamedPart, PositiveNumber, from_name

PosteriorName = Literal[
    "full_covariance_normal",
    "low_rank_normal",
    "matrix_normal",
    "mean_field_normal",
    "point",
    "rank_1",
]
InitialScale = Annotated[
    PositiveNumber,
    Field(
        le=10,
        description="Standard deviation at the start, in units of 1/sqrt(fan_in).",
    ),
]


class MeanFieldNormalPosterior(NamedPart):
    """Independent normals: the default."""

    name: Literal["mean_field_normal"] = "mean_field_normal"
    initial_scale: InitialScale = 0.1


class FullCovarianceNormalPosterior(NamedPart):
    """A normal with a covariance of any two weights, for 4096 weights at most."""

    name: Literal["full_covariance_normal"] = "full_covariance_normal"
    initial_scale: InitialScale = 0.1


class LowRankNormalPosterior(NamedPart):
    """A normal whose covariance is a diagonal and a few directions."""

    name: Literal["low_rank_normal"] = "low_rank_normal"
    rank: Annotated[
        Integer, Field(ge=1, le=100, description="Number of directions.")
    ] = 2
    initial_scale: InitialScale = 0.1


class MatrixNormalPosterior(NamedPart):
    """A normal with a covariance of rows times one of columns."""

    name: Literal["matrix_normal"] = "matrix_normal"
    covariance: Annotated[
        Literal["diagonal", "full"],
        Field(description="`full` takes 4096 rows and columns at most."),
    ] = "diagonal"
    initial_scale: InitialScale = 0.1


class PointPosterior(NamedPart):
    """A single value: maximum a posteriori, or with `prior: null` of the likelihood."""

    name: Literal["point"] = "point"


class Rank1Posterior(NamedPart):
    """A matrix of points times random factors of its rows and columns."""

    name: Literal["rank_1"] = "rank_1"
    factor_scale: Annotated[
        PositiveNumber,
        Field(description="Standard deviation of the factors' prior."),
    ] = 0.1
    initial_scale: InitialScale = 0.1


_Posterior = Annotated[
    MeanFieldNormalPosterior
    | FullCovarianceNormalPosterior
    | LowRankNormalPosterior
    | MatrixNormalPosterior
    | PointPosterior
    | Rank1Posterior,
    Field(discriminator="name"),
]
Posterior = Annotated[
    _Posterior,
    BeforeValidator(from_name, json_schema_input_type=PosteriorName | _Posterior),
]
