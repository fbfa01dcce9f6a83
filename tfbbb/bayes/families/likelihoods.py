"""The likelihoods by the names of `tfbbb.likelihoods`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tfbbb.base.task import Task
from tfbbb.bayes.families.arguments import (
    Flag,
    Integer,
    Number,
    PositiveNumber,
)
from tfbbb.bayes.families.support import (
    LARGEST_COUNT,
    LARGEST_TARGET,
    Support,
)

# What an empty field of a form means.
LEARNED: dict[str, Any] = {"x-empty": "learned"}
Heteroscedastic = Annotated[
    Flag, Field(description="Whether the network predicts the noise of each row.")
]
Standardize = Annotated[
    Flag, Field(description="Whether the network predicts standardised targets.")
]
NoiseScale = Annotated[
    PositiveNumber | None,
    Field(
        description="Scale of the noise, in units of the target; null to learn it.",
        json_schema_extra=LEARNED,
    ),
]
Resolution = Annotated[
    PositiveNumber | None,
    Field(
        description="Step between possible targets, 1 for whole numbers: the noise is "
        "at least that of rounding. Null for targets that may be any number.",
        json_schema_extra={"x-empty": "none"},
    ),
]
# Beyond this concentration a normal is as good, and TensorFlow's incomplete gamma and
# beta functions lose precision.
LARGEST_CONCENTRATION = 1e5
Concentration = Annotated[
    PositiveNumber | None,
    Field(
        le=LARGEST_CONCENTRATION,
        description="Null to learn it.",
        json_schema_extra=LEARNED,
    ),
]
_REAL = Support(-LARGEST_TARGET, LARGEST_TARGET)
_POSITIVE = Support(1.0 / LARGEST_TARGET, LARGEST_TARGET)
_COUNTS = Support(0.0, LARGEST_COUNT, integer=True)


class LikelihoodFamily:
    """Declares a likelihood, without TensorFlow.

    The annotations of a subclass are its arguments.

    Attributes:
        task: The kind of prediction.
        support: The numbers that a target may be; None for classes.
        binary: Whether there are exactly two classes.
        integer_classes: Whether the classes must be whole numbers, whose order counts.
    """

    task: ClassVar[Task]
    support: ClassVar[Support | None] = None
    binary: ClassVar[bool] = False
    integer_classes: ClassVar[bool] = False

    @property
    def given_noise(self) -> str | None:
        """Name of the argument that gives the noise, or None if it is not given."""
        names = ("scale", "concentration")
        return next((n for n in names if getattr(self, n, None) is not None), None)


class RegressionFamily(LikelihoodFamily):
    """Declares a likelihood of numbers."""

    task = "regression"
    support: ClassVar[Support | None] = _REAL


class ClassificationFamily(LikelihoodFamily):
    """Declares a likelihood of classes."""

    task = "classification"


class NormalLikelihood(RegressionFamily):
    """A number with normal noise."""

    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True
    resolution: Resolution = None


class LaplaceLikelihood(NormalLikelihood):
    """A number with Laplace noise."""


class StudentTLikelihood(RegressionFamily):
    """A number with outliers: the default of a regression."""

    heteroscedastic: Heteroscedastic = False
    df: Annotated[
        Number | None,
        Field(
            gt=2,
            description="Degrees of freedom; null to learn them.",
            json_schema_extra=LEARNED,
        ),
    ] = None
    scale: NoiseScale = None
    standardize: Standardize = True
    resolution: Resolution = None


class NormalMixtureLikelihood(RegressionFamily):
    """A number whose distribution has several modes."""

    components: Annotated[
        Integer, Field(ge=1, le=50, description="Number of modes.")
    ] = 2
    standardize: Standardize = True


class MultivariateNormalLikelihood(RegressionFamily):
    """Numbers with correlated normal noise; the same as `normal` for one target."""

    heteroscedastic: Heteroscedastic = False
    standardize: Standardize = True


class LogNormalLikelihood(NormalLikelihood):
    """A positive number whose logarithm has normal noise."""

    support = _POSITIVE


class GammaLikelihood(RegressionFamily):
    """A positive number whose noise grows with its mean."""

    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True
    support = _POSITIVE


class BetaLikelihood(RegressionFamily):
    """A number strictly between two bounds."""

    low: Annotated[Number, Field(description="Lower bound.")] = 0.0
    high: Annotated[Number, Field(description="Upper bound.")] = 1.0
    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True

    @property
    def support(self) -> Support:  # type: ignore[override]
        """The numbers strictly between the bounds."""
        return Support(self.low, self.high, closed=False)


class PoissonLikelihood(RegressionFamily):
    """A count whose variance is its mean."""

    standardize: Standardize = True
    support = _COUNTS


class NegativeBinomialLikelihood(RegressionFamily):
    """A count whose variance may exceed its mean."""

    heteroscedastic: Heteroscedastic = False
    concentration: Annotated[
        PositiveNumber | None,
        Field(description="Null to learn it.", json_schema_extra=LEARNED),
    ] = None
    standardize: Standardize = True
    support = _COUNTS


class CategoricalLikelihood(ClassificationFamily):
    """One of several classes: the default of a classification."""


class BernoulliLikelihood(ClassificationFamily):
    """One of two classes, from one output."""

    binary = True


class OrderedLogisticLikelihood(ClassificationFamily):
    """One of several ordered classes, which are whole numbers."""

    heteroscedastic: Heteroscedastic = False
    integer_classes = True


LIKELIHOODS: dict[str, type[LikelihoodFamily]] = {
    "bernoulli": BernoulliLikelihood,
    "beta": BetaLikelihood,
    "categorical": CategoricalLikelihood,
    "gamma": GammaLikelihood,
    "laplace": LaplaceLikelihood,
    "log_normal": LogNormalLikelihood,
    "multivariate_normal": MultivariateNormalLikelihood,
    "negative_binomial": NegativeBinomialLikelihood,
    "normal": NormalLikelihood,
    "normal_mixture": NormalMixtureLikelihood,
    "ordered_logistic": OrderedLogisticLikelihood,
    "poisson": PoissonLikelihood,
    "student_t": StudentTLikelihood,
}


def likelihood_support(name: str, config: Mapping[str, Any] | None = None) -> Support:
    """Returns the support of the targets of a likelihood of numbers.

    Args:
        name: Name of the likelihood, such as `"beta"`.
        config: Its non-default arguments.

    Raises:
        KeyError: No likelihood of numbers in `tfbbb.likelihoods` has this name.
        ValueError: No number lies between the bounds.
    """
    likelihood = LIKELIHOODS[name]()
    vars(likelihood).update(config or {})
    if likelihood.support is None:
        raise KeyError(name)
    return likelihood.support
