"""The network of a spec."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.posteriors.posterior import MAX_COVARIANCE
from tfbbb.training.spec.families import (
    Estimator,
    Likelihood,
    Option,
    Posterior,
    PosteriorPart,
    Prior,
    PriorPart,
    SpecPart,
    estimators,
    posteriors,
    priors,
)
from tfbbb.training.spec.layers import (
    MAX_LAYERS,
    Activation,
    DenseLayer,
    LayerSpec,
    Units,
)

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
    layers: Annotated[
        Annotated[tuple[LayerSpec, ...], Field(fail_fast=True)] | None,
        Field(
            max_length=MAX_LAYERS,
            description="The hidden layers, instead of `hidden_units`; the output "
            "layer is added to them.",
            examples=[[{"type": "dense", "units": 50}]],
        ),
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
    estimator: Annotated[
        Estimator,
        Field(
            description="How the noise of q(w) reaches the outputs in training.",
            examples=["auto", {"name": "flipout", "num_samples": 2}],
        ),
    ] = estimators.make("auto")
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
    def shares_layers(self) -> bool:
        """Whether members would share the weights of a normalization layer."""
        shared = {"batch_normalization", "layer_normalization"}
        return any(layer.type in shared for layer in self.layers or ())

    def complete_layers(self, num_outputs: int) -> tuple[LayerSpec, ...]:
        """Returns the hidden layers and the output layer, with all fields set."""
        hidden: tuple[LayerSpec, ...] = self.layers or tuple(
            DenseLayer(type="dense", units=units) for units in self.hidden_units or ()
        )
        output = DenseLayer.model_construct(type="dense", units=num_outputs)
        return (
            *(
                self._complete(layer, self.activation)
                if isinstance(layer, DenseLayer)
                else layer
                for layer in hidden
            ),
            self._complete(output, "linear"),
        )

    def _complete(self, layer: DenseLayer, activation: Activation) -> DenseLayer:
        posterior = layer.posterior or self.posterior
        prior = layer.prior or self.prior
        # Some priors need many weights, and there are few biases.
        bias_posterior = layer.bias_posterior or posteriors.make(
            "point" if posterior.family.deterministic else "mean_field_normal"
        )
        bias_prior = layer.bias_prior or priors.make(
            "none" if prior.name == "none" else "normal"
        )
        complete: dict[str, Any] = {
            "activation": layer.activation or activation,
            "posterior": posterior,
            "prior": prior,
            "bias_posterior": bias_posterior,
            "bias_prior": bias_prior,
            "estimator": layer.estimator or self.estimator,
        }
        return layer.model_copy(update=complete)

    def check_size(self, num_features: int, num_outputs: int) -> None:
        """Raises ValueError if the network has too many parameters."""
        total, inputs = 0, num_features
        for layer in self.complete_layers(num_outputs):
            if not isinstance(layer, DenseLayer):
                continue
            assert layer.posterior is not None
            name, posterior = layer.posterior.name, layer.posterior.make()
            kernel = (inputs, layer.units)
            size = posterior.covariance_size(kernel)
            if size > MAX_COVARIANCE:
                raise ValueError(
                    f"the posterior '{name}' would need a covariance of "
                    f"{size} × {size}, more than {MAX_COVARIANCE} × {MAX_COVARIANCE}; "
                    "use fewer units or 'low_rank_normal'"
                )
            total += (self.members or 1) * posterior.num_parameters(kernel)
            inputs = layer.units
        if total > MAX_PARAMETERS:
            raise ValueError(
                f"the posterior of this network has {total} parameters, more than the "
                f"limit of {MAX_PARAMETERS}; use fewer units, layers or members, or a "
                "smaller posterior"
            )

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        if self.hidden_units is not None and self.layers is not None:
            raise ValueError("give `hidden_units` or `layers`, not both")
        *hidden, output = self.complete_layers(1)
        places = [
            *((f"layer {number}: ", layer) for number, layer in enumerate(hidden, 1)),
            ("", output),
        ]
        dense = [
            (place, layer) for place, layer in places if isinstance(layer, DenseLayer)
        ]
        for place, layer in dense:
            _check_strategies(place, layer)
        draws = {getattr(layer.estimator, "num_samples", 1) for _, layer in dense}
        if len(draws - {1}) > 1:
            raise ValueError(
                "estimators that draw several samples must draw the same number: "
                f"received {', '.join(map(str, sorted(draws)))}"
            )
        if (self.members or 1) > 1 and self.shares_layers:
            raise ValueError(
                "members must be independent, but would share a normalization layer: "
                "leave the layer out, or use one member"
            )
        self.check_size(num_features=1, num_outputs=1)
        return self


def _check_strategies(place: str, layer: DenseLayer) -> None:
    weights = ("weights", layer.posterior, layer.prior)
    bias = ("bias", layer.bias_posterior, layer.bias_prior)
    estimator = layer.estimator
    assert estimator is not None
    for what, posterior, prior in (weights, bias):
        if what == "bias" and not layer.use_bias:
            continue
        assert posterior is not None
        assert prior is not None
        family = posterior.make()
        if not family.has_optimum(None if prior.name == "none" else prior):
            raise ValueError(f"{place}{_without_optimum(what, posterior, prior)}")
        if not estimator.make().can_serve(family):
            raise ValueError(
                f"{place}the estimator '{estimator.name}' cannot train the posterior "
                f"'{posterior.name}' of the {what}; use another, or 'auto'"
            )


def _without_optimum(what: str, posterior: PosteriorPart, prior: PriorPart) -> str:
    if prior.name == "none":
        return (
            f"only the posterior 'point' needs no prior: received "
            f"'{posterior.name}' of the {what}"
        )
    return (
        f"the density of the prior '{prior.name}' has no upper bound, so the "
        f"posterior '{posterior.name}' of the {what} has no optimum; use e.g. "
        "'normal', 'laplace' or 'student_t'"
    )
