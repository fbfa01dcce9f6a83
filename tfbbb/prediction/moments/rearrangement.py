"""Operations that move, copy or leave elements, and so their means and variances.

All are exact.
"""

from keras import layers

from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call, register_moments


@register_moments(
    layers.Cropping1D,
    layers.Cropping2D,
    layers.Cropping3D,
    layers.Flatten,
    layers.Permute,
    layers.Reshape,
    layers.ZeroPadding1D,
    layers.ZeroPadding2D,
    layers.ZeroPadding3D,
)
def moved(call: Call) -> Marginals:
    """Moves elements; padded elements are certainly 0."""
    # Its `call`, as calling the layer itself would cast to its own precision.
    operation, x = call.operation, call.inputs
    return x.replace(mean=operation.call(x.mean), variance=operation.call(x.variance))


@register_moments(
    layers.RepeatVector,
    layers.UpSampling1D,
    layers.UpSampling2D,
    layers.UpSampling3D,
)
def copied(call: Call) -> Marginals:
    """Elements at several places, which then depend on each other."""
    if getattr(call.operation, "interpolation", "nearest") != "nearest":
        call.refuse("it interpolates; `interpolation='nearest'` has a rule")
    return moved(call).replace(independent=False)


@register_moments(
    layers.ActivityRegularization,
    layers.AlphaDropout,
    layers.Dropout,
    layers.GaussianDropout,
    layers.GaussianNoise,
    layers.Identity,
    layers.SpatialDropout1D,
    layers.SpatialDropout2D,
    layers.SpatialDropout3D,
)
def unchanged(call: Call) -> Marginals:
    """Returns the inputs: the layer acts only in training."""
    inputs: Marginals = call.inputs
    return inputs
