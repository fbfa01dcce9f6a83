"""The layers of a spec's network."""

from typing import Annotated, Literal

from pydantic import Field

from tfbbb.bayes.families.arguments import Flag, Integer, Number, PositiveNumber
from tfbbb.training.spec.families import Estimator, Posterior, Prior, SpecPart

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


class DenseLayer(SpecPart):
    """A fully connected layer with a posterior of its weights.

    Omitted fields default to those of the model.
    """

    type: Literal["dense"]
    units: Annotated[Units, Field(description="Number of outputs.", examples=[50])]
    activation: Annotated[
        Activation | None, Field(description="Defaults to the model's.")
    ] = None
    use_bias: Flag = True
    posterior: Annotated[
        Posterior | None, Field(description="Defaults to the model's.")
    ] = None
    prior: Annotated[Prior | None, Field(description="Defaults to the model's.")] = None
    bias_posterior: Annotated[
        Posterior | None,
        Field(
            description="By default `point` if the weights have it, else mean-field."
        ),
    ] = None
    bias_prior: Annotated[
        Prior | None,
        Field(description="By default `none` if the weights have it, else `normal`."),
    ] = None
    estimator: Annotated[
        Estimator | None, Field(description="Defaults to the model's.")
    ] = None


class DropoutLayer(SpecPart):
    """Drops units at random, only in training."""

    type: Literal["dropout"]
    rate: Annotated[
        Number,
        Field(gt=0, lt=1, description="Fraction of the units to drop.", examples=[0.1]),
    ]


class BatchNormalizationLayer(SpecPart):
    """Standardises units over the rows of a batch."""

    type: Literal["batch_normalization"]
    momentum: Annotated[Number, Field(gt=0, lt=1)] = 0.99
    epsilon: PositiveNumber = 1e-3


class LayerNormalizationLayer(SpecPart):
    """Standardises the units of each row."""

    type: Literal["layer_normalization"]
    epsilon: PositiveNumber = 1e-3


LayerSpec = Annotated[
    DenseLayer | DropoutLayer | BatchNormalizationLayer | LayerNormalizationLayer,
    Field(discriminator="type"),
]
