"""The likelihoods of a spec, by the names of `tfbbb.likelihoods`."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tfbbb.data.task import Task
from tfbbb.support import Support, likelihood_support
from tfbbb.training.spec.part import (
    Flag,
    Integer,
    NamedPart,
    Number,
    PositiveNumber,
    from_name,
)

LikelihoodName = Literal[
    "bernoulli",
    "beta",
    "categorical",
    "gamma",
    "laplace",
    "log_normal",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "normal_mixture",
    "ordered_logistic",
    "poisson",
    "student_t",
]
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


class LikelihoodPart(NamedPart):
    """A likelihood: what targets it takes, and what it is made with.

    Attributes:
        task: What kind of prediction it is for.
    """

    task: ClassVar[Task] = "regression"

    @property
    def support(self) -> Support | None:
        """The numbers that a target may be; None for classes."""
        if self.task == "classification":
            return None
        return likelihood_support(self.name, self.model_dump())

    @model_validator(mode="after")
    def _noise_is_given_or_an_output(self) -> Self:
        for name in ("scale", "concentration"):
            given = getattr(self, name, None)
            if given is not None and getattr(self, "heteroscedastic", False):
                raise ValueError(
                    f"the noise is either given (`{name}`) or an output of the network "
                    f"(`heteroscedastic: true`); leave one out"
                )
        return self


class NormalLikelihood(LikelihoodPart):
    """A number with normal noise: the default of a regression."""

    name: Literal["normal"] = "normal"
    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True


class LaplaceLikelihood(LikelihoodPart):
    """A number with noise of Laplace's distribution."""

    name: Literal["laplace"] = "laplace"
    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True


class StudentTLikelihood(LikelihoodPart):
    """A number with outliers."""

    name: Literal["student_t"] = "student_t"
    heteroscedastic: Heteroscedastic = False
    df: Annotated[
        Number | None,
        Field(gt=2, description="Degrees of freedom; null to learn them."),
    ] = None
    scale: NoiseScale = None
    standardize: Standardize = True


class NormalMixtureLikelihood(LikelihoodPart):
    """A number whose distribution has several modes."""

    name: Literal["normal_mixture"] = "normal_mixture"
    components: Annotated[
        Integer, Field(ge=1, le=50, description="Number of modes.")
    ] = 2
    standardize: Standardize = True


class MultivariateNormalLikelihood(LikelihoodPart):
    """Normal noise with a covariance; of one target it is that of `normal`."""

    name: Literal["multivariate_normal"] = "multivariate_normal"
    heteroscedastic: Heteroscedastic = False
    standardize: Standardize = True


class LogNormalLikelihood(LikelihoodPart):
    """A positive number whose logarithm has normal noise."""

    name: Literal["log_normal"] = "log_normal"
    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True


class GammaLikelihood(LikelihoodPart):
    """A positive number whose noise grows with its mean."""

    name: Literal["gamma"] = "gamma"
    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True


class BetaLikelihood(LikelihoodPart):
    """A number strictly between two bounds."""

    name: Literal["beta"] = "beta"
    low: Annotated[Number, Field(description="Lower bound.")] = 0.0
    high: Annotated[Number, Field(description="Upper bound.")] = 1.0
    heteroscedastic: Heteroscedastic = False
    concentration: Concentration = None
    standardize: Standardize = True

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        try:
            _ = self.support
        except ValueError:
            raise ValueError(
                "`low` must be smaller than `high`, in single precision too: received "
                f"{self.low!r} and {self.high!r}"
            ) from None
        return self


class PoissonLikelihood(LikelihoodPart):
    """A count whose variance is its mean."""

    name: Literal["poisson"] = "poisson"
    standardize: Standardize = True


class NegativeBinomialLikelihood(LikelihoodPart):
    """A count whose variance may exceed its mean."""

    name: Literal["negative_binomial"] = "negative_binomial"
    heteroscedastic: Heteroscedastic = False
    concentration: Annotated[
        PositiveNumber | None, Field(description="Null to learn it.")
    ] = None
    standardize: Standardize = True


class CategoricalLikelihood(LikelihoodPart):
    """One of several classes: the default of a classification."""

    name: Literal["categorical"] = "categorical"
    task: ClassVar[Task] = "classification"


class BernoulliLikelihood(LikelihoodPart):
    """One of two classes, from one output."""

    name: Literal["bernoulli"] = "bernoulli"
    task: ClassVar[Task] = "classification"


class OrderedLogisticLikelihood(LikelihoodPart):
    """One of several classes in an order: that of whole numbers."""

    name: Literal["ordered_logistic"] = "ordered_logistic"
    heteroscedastic: Heteroscedastic = False
    task: ClassVar[Task] = "classification"


_Likelihood = Annotated[
    BernoulliLikelihood
    | BetaLikelihood
    | CategoricalLikelihood
    | GammaLikelihood
    | LaplaceLikelihood
    | LogNormalLikelihood
    | MultivariateNormalLikelihood
    | NegativeBinomialLikelihood
    | NormalLikelihood
    | NormalMixtureLikelihood
    | OrderedLogisticLikelihood
    | PoissonLikelihood
    | StudentTLikelihood,
    Field(discriminator="name"),
]
Likelihood = Annotated[
    _Likelihood,
    BeforeValidator(from_name, json_schema_input_type=LikelihoodName | _Likelihood),
]
DEFAULT_LIKELIHOODS: dict[Task, Any] = {
    "regression": NormalLikelihood(heteroscedastic=True),
    "classification": CategoricalLikelihood(),
}
