"""The network of a spec."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.posteriors.posterior import MAX_COVARIANCE
from tfbbb.training.spec.families import (
    Likelihood,
    Option,
    Posterior,
    PosteriorPart,
    Prior,
    PriorPart,
    SpecPart,
    posteriors,
    priors,
)

Activation = Literal[
    "elu",
    "gelu",
    "leaky_relu",
    "linear",
    "mish",
    "relu",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
]
Units = Annotated[Integer, Field(ge=1, le=10_000)]
MAX_LAYERS = 50
NumericEncoding = Literal["standardized", "piecewise_linear"]
MAX_MEMBERS = 100
# 320 MB, with the gradient and two moments of Adam per parameter.
MAX_PARAMETERS = 20_000_000


class ModelSpec(SpecPart):
    """The network: by default of a size that depends on the rows."""

    hidden_units: Annotated[
        Annotated[tuple[Units, ...], Field(fail_fast=True)] | None,
        Field(
            max_length=MAX_LAYERS,
            description="Units of the hidden layers; empty for a linear model. By "
            "default two layers, whose size depends on the rows.",
            examples=[[50, 50]],
        ),
        Option("hidden"),
    ] = None
    activation: Annotated[
        Activation, Field(description="Activation of the hidden layers.")
    ] = "relu"
    posterior: Annotated[
        Posterior,
        Field(
            description="Family q(w) of the weights: a name, or a name with options.",
            examples=["mean_field_normal", {"name": "low_rank_normal", "rank": 4}],
        ),
    ] = posteriors.make("mean_field_normal")
    prior: Annotated[
        Prior,
        Field(
            description="Prior p(w) of the weights: a name, or a name with options.",
            examples=["normal", {"name": "normal", "scale": 0.5}],
        ),
    ] = priors.make("normal")
    likelihood: Annotated[
        Likelihood | None,
        Field(
            description="Distribution of the target given the outputs. By default "
            "`categorical` for classes; for numbers `student_t` with heteroscedastic "
            "noise, unless one for counts, grades, positive numbers, shares, numbers "
            "that are often 0, or two modes is clearly better.",
            examples=["poisson", {"name": "zero_inflated", "base": "gamma"}],
        ),
    ] = None
    members: Annotated[
        Integer | None,
        Field(
            ge=1,
            le=MAX_MEMBERS,
            description="Number of posteriors in the mixture, trained together; by "
            "default chosen by the number of rows.",
            examples=[8],
        ),
    ] = None
    numeric_encoding: Annotated[
        NumericEncoding | None,
        Field(
            description="How columns of numbers reach the network: `standardized`, or "
            "`piecewise_linear` (standardised, and beside this one number per "
            "interval between quantiles). By default chosen by the number of rows and "
            "columns."
        ),
    ] = None

    @property
    def bias_posterior(self) -> PosteriorPart:
        """The posterior of the biases: points if the weights are."""
        is_point = self.posterior.family.deterministic
        return posteriors.make("point" if is_point else "mean_field_normal")

    @property
    def bias_prior(self) -> PriorPart:
        """The prior of the biases: some priors need many weights."""
        return priors.make("none" if self.prior.name == "none" else "normal")

    def check_size(self, num_features: int, num_outputs: int) -> None:
        """Raises ValueError if the network has too many parameters."""
        total, inputs, posterior = 0, num_features, self.posterior.make()
        for units in (*(self.hidden_units or ()), num_outputs):
            kernel = (inputs, units)
            size = posterior.covariance_size(kernel)
            if size > MAX_COVARIANCE:
                raise ValueError(
                    f"the posterior '{self.posterior.name}' would need a covariance of "
                    f"{size} × {size}, more than {MAX_COVARIANCE} × {MAX_COVARIANCE}; "
                    "use fewer units or 'low_rank_normal'"
                )
            total += (self.members or 1) * posterior.num_parameters(kernel)
            inputs = units
        if total > MAX_PARAMETERS:
            raise ValueError(
                f"the posterior of this network has {total} parameters, more than the "
                f"limit of {MAX_PARAMETERS}; use fewer units, layers or members, or a "
                "smaller posterior"
            )

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        prior, family = self.prior, self.posterior.make()
        if not family.has_optimum(None if prior.name == "none" else prior):
            raise ValueError(self._without_optimum())
        self.check_size(num_features=1, num_outputs=1)
        return self

    def _without_optimum(self) -> str:
        if self.prior.name == "none":
            return (
                "only the posterior 'point' needs no prior: received "
                f"'{self.posterior.name}'"
            )
        return (
            f"the density of the prior '{self.prior.name}' has no upper bound, so the "
            f"posterior '{self.posterior.name}' has no optimum; use e.g. 'normal', "
            "'laplace' or 'student_t'"
        )
