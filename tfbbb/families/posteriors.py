"""The variational families q(w) by the names of `tfbbb.posteriors`."""

import math
from typing import Annotated, Literal

from pydantic import Field

from tfbbb.families.arguments import Integer, PositiveNumber
from tfbbb.families.priors import PriorFamily

# The largest matrix that has a Cholesky factor here.
MAX_COVARIANCE = 4096

InitialScale = Annotated[
    PositiveNumber,
    Field(
        le=10,
        description="Standard deviation at the start, in units of 1/sqrt(fan_in).",
    ),
]
Shape = tuple[int, ...]


class PosteriorFamily:
    """What is known of a variational family q(w) without TensorFlow.

    The annotations of a subclass are its arguments.

    Attributes:
        factorised: Whether the weights are independent normals under q, which is what
            the `local` estimator needs.
        symmetric: Whether q is symmetric about its mean, weight by weight, which is
            what the `flipout` estimator needs.
        reparameterised: Whether draws have a gradient in the parameters. Without,
            only the `score_function` estimator can train them.
        deterministic: Whether q is a point: draws are all the same.
        has_points: Whether some parameters are point estimates, which climb to the
            maximum of the prior's density.
        has_density: Whether `log_prob` is defined.
    """

    factorised = False
    symmetric = False
    reparameterised = True
    deterministic = False
    has_points = False
    has_density = True

    def num_parameters(self, shape: Shape) -> int:
        """Returns how many numbers describe q over a weight of this shape."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how many parameters it has."
        )

    def covariance_size(self, shape: Shape) -> int:
        """Returns the size of the largest covariance matrix over such a weight.

        `MAX_COVARIANCE` at most; 0 for families without a covariance matrix.
        """
        return 0

    def has_optimum(self, prior: PriorFamily | None) -> bool:
        """Whether q has a divergence from this prior to train on; None for no prior."""
        if prior is None:
            return self.deterministic
        return prior.bounded or not self.has_points


class MeanFieldNormalPosterior(PosteriorFamily):
    """Independent normals: the default."""

    initial_scale: InitialScale = 0.1
    factorised = True
    symmetric = True

    def num_parameters(self, shape: Shape) -> int:
        return 2 * math.prod(shape)


class FullCovarianceNormalPosterior(PosteriorFamily):
    """A normal with a covariance of any two weights, for 4096 weights at most."""

    initial_scale: InitialScale = 0.1

    def num_parameters(self, shape: Shape) -> int:
        size = math.prod(shape)
        return size + _triangle(size)

    def covariance_size(self, shape: Shape) -> int:
        return math.prod(shape)


class LowRankNormalPosterior(PosteriorFamily):
    """A normal whose covariance is a diagonal and a few directions."""

    rank: Annotated[
        Integer, Field(ge=1, le=100, description="Number of directions.")
    ] = 2
    initial_scale: InitialScale = 0.1

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape) * (2 + self.rank)


class MatrixNormalPosterior(PosteriorFamily):
    """A normal with a covariance of rows times one of columns."""

    covariance: Annotated[
        Literal["diagonal", "full"],
        Field(description="`full` takes 4096 rows and columns at most."),
    ] = "diagonal"
    initial_scale: InitialScale = 0.1

    @property
    def factorised(self) -> bool:  # type: ignore[override]
        """With diagonal covariances the weights are independent."""
        return self.covariance == "diagonal"

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """With diagonal covariances the weights are independent."""
        return self.covariance == "diagonal"

    def num_parameters(self, shape: Shape) -> int:
        rows, columns = matrix_sides(shape)
        if self.covariance == "diagonal":
            return math.prod(shape) + rows + columns
        return math.prod(shape) + _triangle(rows) + _triangle(columns)

    def covariance_size(self, shape: Shape) -> int:
        return max(matrix_sides(shape)) if self.covariance == "full" else 0


class PointPosterior(PosteriorFamily):
    """A single value: maximum a posteriori, or with `prior: null` of the likelihood."""

    factorised = True
    symmetric = True
    deterministic = True
    has_points = True
    has_density = False

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape)


class Rank1Posterior(PosteriorFamily):
    """A matrix of points times random factors of its rows and columns."""

    factor_scale: Annotated[
        PositiveNumber,
        Field(description="Standard deviation of the factors' prior."),
    ] = 0.1
    initial_scale: InitialScale = 0.1
    has_points = True
    has_density = False

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape) + 2 * sum(shape[-2:])


def matrix_sides(shape: Shape) -> tuple[int, int]:
    """Returns the number of rows and of columns of a weight as a matrix."""
    return math.prod(shape[:-1]), shape[-1]


def _triangle(size: int) -> int:
    """Returns the number of entries of a triangular matrix, diagonal included."""
    return size * (size + 1) // 2


POSTERIORS: dict[str, type[PosteriorFamily]] = {
    "mean_field_normal": MeanFieldNormalPosterior,
    "full_covariance_normal": FullCovarianceNormalPosterior,
    "low_rank_normal": LowRankNormalPosterior,
    "matrix_normal": MatrixNormalPosterior,
    "point": PointPosterior,
    "rank_1": Rank1Posterior,
}
