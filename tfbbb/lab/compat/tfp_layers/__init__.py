"""The names of `tfp.layers` for Keras 3, with their signatures and their meaning.

A program that was written for `tfp.layers` of TensorFlow Probability 0.25 runs with

    import tfbbb.lab.compat.tfp_layers as tfpl
"""

from tfbbb.lab.compat.tfp_layers import default_distributions as util
from tfbbb.lab.compat.tfp_layers.convolution import (
    Conv1DFlipout,
    Conv1DReparameterization,
    Conv2DFlipout,
    Conv2DReparameterization,
    Conv3DFlipout,
    Conv3DReparameterization,
    Convolution1DFlipout,
    Convolution1DReparameterization,
    Convolution2DFlipout,
    Convolution2DReparameterization,
    Convolution3DFlipout,
    Convolution3DReparameterization,
)
from tfbbb.lab.compat.tfp_layers.default_distributions import (
    default_mean_field_normal_fn,
    default_multivariate_normal_fn,
)
from tfbbb.lab.compat.tfp_layers.dense import (
    DenseFlipout,
    DenseLocalReparameterization,
    DenseReparameterization,
)
from tfbbb.lab.compat.tfp_layers.dense_variational import DenseVariational
from tfbbb.lab.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.lab.compat.tfp_layers.distribution_tensor import DistributionTensor
from tfbbb.lab.compat.tfp_layers.divergence import (
    KLDivergenceAddLoss,
    KLDivergenceRegularizer,
)
from tfbbb.lab.compat.tfp_layers.parametric import (
    IndependentBernoulli,
    IndependentLogistic,
    IndependentNormal,
    IndependentPoisson,
    MixtureLogistic,
    MixtureNormal,
    MixtureSameFamily,
    MultivariateNormalTriL,
    OneHotCategorical,
)
from tfbbb.lab.compat.tfp_layers.variable_layer import VariableLayer

__all__ = [
    "Conv1DFlipout",
    "Conv1DReparameterization",
    "Conv2DFlipout",
    "Conv2DReparameterization",
    "Conv3DFlipout",
    "Conv3DReparameterization",
    "Convolution1DFlipout",
    "Convolution1DReparameterization",
    "Convolution2DFlipout",
    "Convolution2DReparameterization",
    "Convolution3DFlipout",
    "Convolution3DReparameterization",
    "DenseFlipout",
    "DenseLocalReparameterization",
    "DenseReparameterization",
    "DenseVariational",
    "DistributionLambda",
    "DistributionTensor",
    "IndependentBernoulli",
    "IndependentLogistic",
    "IndependentNormal",
    "IndependentPoisson",
    "KLDivergenceAddLoss",
    "KLDivergenceRegularizer",
    "MixtureLogistic",
    "MixtureNormal",
    "MixtureSameFamily",
    "MultivariateNormalTriL",
    "OneHotCategorical",
    "VariableLayer",
    "default_mean_field_normal_fn",
    "default_multivariate_normal_fn",
    "util",
]
