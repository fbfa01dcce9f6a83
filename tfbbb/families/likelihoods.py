"""The likelihoods by the names of `tfbbb.likelihoods`."""

from typing import Annotated, ClassVar

from pydantic import Field

from tfbbb.data.task import Task
from tfbbb.families.arguments import Flag, Integer, Number, PositiveNumber

Heteroscedastic = Annotated[
    Flag, Field(description="Whether the network gives the noise of each row.")
]
Standardize = Annotated[
    Flag, Field(description="Whether the network works in units of the targets' spread")
]
NoiseScale = Annotated[
    PositiveNumber | None,
    Field(description="The noise, in units of the target; null to learn it."),
]
Concentration = Annotated[
    PositiveNumber | None, Field(le=1e5, description="Null to learn it.")
]


class LikelihoodFamily:
    """What is known of a likelihood without TensorFlow.

    The annotations of a subclass are its arguments.

    Attributes:
        task: What kind of prediction it is for.
    """

    task: ClassVar[Task] = "regression"


class NormalLikelihood(LikelihoodFamily):
    """A number with normal noise: the default of a regression."""

    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True


class LaplaceLikelihood(NormalLikelihood):
    """A number with noise of Laplace's distribution."""


class StudentTLikelihood(LikelihoodFamily):
    """A number with outliers."""

    heteroscedastic: Heteroscedastic = False
    df: Annotated[
        Number | None,
        Field(gt=2, description="Degrees of freedom; null to learn them."),
    ] = None
    scale: NoiseScale = None
    standardize: Standardize = True


class NormalMixtureLikelihood(LikelihoodFamily):
    """A number whose distribution has several modes."""

    components: Annotated[
        Integer, Field(ge=1, le=50, description="Number of modes.")
    ] = 2
    standardize: Standardize = True


class MultivariateNormalLikelihood(LikelihoodFamily):
    """Normal noise with a covariance; of one target it is that of `normal`."""

    heteroscedastic: Heteroscedastic = False
    standardize: Standardize = True


class LogNormalLikelihood(NormalLikelihood):
    """A positive number whose logarithm has normal noise."""


class GammaLikelihood(LikelihoodFamily):
    """A positive number whose noise grows with its mean."""

    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True


class BetaLikelihood(LikelihoodFamily):
    """A number strictly between two bounds."""

    low: Annotated[Number, Field(description="Lower bound.")] = 0.0
    high: Annotated[Number, Field(description="Upper bound.")] = 1.0
    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True


class PoissonLikelihood(LikelihoodFamily):
    """A count whose variance is its mean."""

    standardize: Standardize = True


class NegativeBinomialLikelihood(LikelihoodFamily):
    """A count whose variance may exceed its mean."""

    heteroscedastic: Heteroscedastic = False
    concentration: Annotated[
        PositiveNumber | None, Field(description="Null to learn it.")
    ] = None
    standardize: Standardize = True


class CategoricalLikelihood(LikelihoodFamily):
    """One of several classes: the default of a classification."""

    task = "classification"


class BernoulliLikelihood(LikelihoodFamily):
    """One of two classes, from one output."""

    task = "classification"


class OrderedLogisticLikelihood(LikelihoodFamily):
    """One of several classes in an order: that of whole numbers."""

    heteroscedastic: Heteroscedastic = False
    task = "classification"


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
