"""The variational families q(w) by the names of `tfbbb.posteriors`."""

import math
from typing import Annotated, Literal

from pydantic import Field

from tfbbb.bayes.families.arguments import Integer, PositiveNumber
from tfbbb.bayes.families.priors import PriorFamily

# Largest size of a covariance matrix.
MAX_COVARIANCE = 4096

InitialScale = Annotated[
    PositiveNumber,
    Field(
        le=10,
        description="Initial standard deviation, in units of 1/sqrt(fan_in).",
    ),
]
Shape = tuple[int, ...]


class PosteriorFamily:
    """Declares a variational family q(w), without TensorFlow.

    The annotations of a subclass are its arguments.

    Attributes:
        factorised: Whether the weights are independent normals under q, as the `local`
            estimator requires.
        symmetric: Whether q is symmetric about its mean, weight by weight, as the
            `flipout` estimator requires.
        reparameterised: Whether draws have a gradient in the parameters. If not, only
            the `score_function` estimator can train them.
        deterministic: Whether q is a point: all draws are the same.
        has_points: Whether some parameters are point estimates, which training moves to
            the maximum of the prior's density.
        has_density: Whether `log_prob` is defined.
        shares_noise: Whether all weight tensors of a draw use the same noise, so that
            they are correlated.
    """

    factorised = False
    symmetric = False
    reparameterised = True
    deterministic = False
    has_points = False
    has_density = True
    shares_noise = False

    def num_parameters(self, shape: Shape) -> int:
        """Returns the number of parameters of q for a weight of this shape."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement `num_parameters`."
        )

    def covariance_size(self, shape: Shape) -> int:
        """Returns the size of the largest covariance matrix for a weight of this shape.

        At most `MAX_COVARIANCE`; 0 for families without a covariance matrix.
        """
        return 0

    def has_optimum(self, prior: PriorFamily | None) -> bool:
        """Whether training with this prior has an optimum; None stands for no prior."""
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
    """A normal with a full covariance matrix, for at most 4096 weights."""

    initial_scale: InitialScale = 0.1

    def num_parameters(self, shape: Shape) -> int:
        size = math.prod(shape)
        return size + _triangle(size)

    def covariance_size(self, shape: Shape) -> int:
        return math.prod(shape)


class LowRankNormalPosterior(PosteriorFamily):
    """A normal whose covariance is a diagonal plus a low-rank matrix."""

    rank: Annotated[Integer, Field(ge=1, le=100, description="Rank of the matrix.")] = 2
    initial_scale: InitialScale = 0.1

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape) * (2 + self.rank)


class MatrixNormalPosterior(PosteriorFamily):
    """A normal whose covariance is a product of row and column covariances."""

    covariance: Annotated[
        Literal["diagonal", "full", "eigenbasis"],
        Field(
            description="`full` and `eigenbasis` allow at most 4096 rows and columns."
        ),
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
        if self.covariance == "eigenbasis":
            return 2 * math.prod(shape) + rows**2 + columns**2
        return math.prod(shape) + _triangle(rows) + _triangle(columns)

    def covariance_size(self, shape: Shape) -> int:
        return 0 if self.covariance == "diagonal" else max(matrix_sides(shape))


class JointNormalPosterior(PosteriorFamily):
    """One normal over all weights of a model, of which a tensor holds its rows.

    It has no name: its size depends on the model. `tfbbb.inference.Laplace` makes it.
    """

    size: int
    initial_scale: InitialScale = 0.1
    shares_noise = True
    # The tensors are independent only given each other.
    has_density = False

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape) * (1 + self.size)

    def covariance_size(self, shape: Shape) -> int:
        return self.size


class PointPosterior(PosteriorFamily):
    """A point estimate: maximum a posteriori, or maximum likelihood without a prior."""

    factorised = True
    symmetric = True
    deterministic = True
    has_points = True
    has_density = False

    def num_parameters(self, shape: Shape) -> int:
        return math.prod(shape)


class Rank1Posterior(PosteriorFamily):
    """A matrix of point estimates times random factors of rows and columns."""

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
