"""Checks that the loss and the `kl_weight` of the layers form one objective."""

import math
from dataclasses import dataclass

import keras
from keras import tree

from tfbbb.layers.named_layers import named_layers
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.losses import NegativeLogLikelihood

# A tolerance of a tenth accepts 1/(N - 1) for 1/N, but detects N counted before a
# validation split.
TOLERANCE = 1.1

_MEANS_OVER_OUTPUTS = (
    keras.losses.mean_squared_error,
    keras.losses.mean_absolute_error,
    keras.losses.mean_absolute_percentage_error,
    keras.losses.mean_squared_logarithmic_error,
    keras.losses.huber,
    keras.losses.log_cosh,
    keras.losses.poisson,
    keras.losses.binary_crossentropy,
    keras.losses.binary_focal_crossentropy,
    keras.losses.hinge,
    keras.losses.squared_hinge,
)
_SUMS_OVER_CLASSES = (
    keras.losses.categorical_crossentropy,
    keras.losses.sparse_categorical_crossentropy,
    keras.losses.categorical_focal_crossentropy,
)


def objective_mismatch(model: keras.Model, rows: float, batches: float) -> str | None:
    """Describes why the loss of an epoch is not the negative evidence lower bound.

    If the negative log likelihood is summed over the D outputs of a row and averaged
    over rows, the right weight of the divergence is 1/N. The losses of Keras average
    over D too: the right weight is then 1/(N D). With `reduction="sum"` they sum over
    the B rows of a batch: the right weight is then B/N, one over the number of batches.
    """
    weights = _given_weights(model)
    if isinstance(model, BayesianModel):
        rows = model.num_rows or rows
        right = RightWeight(1.0 / rows, True, "the loss of a BayesianModel")
    else:
        right = _right_weight(model, rows, batches)
    wrong = {name: weight for name, weight in weights.items() if right.refutes(weight)}
    if wrong:
        received = ", ".join(
            f"{name}: {weight:.4g} (temperature {weight / right.weight:.4g})"
            for name, weight in wrong.items()
        )
        return (
            f"The weight of the KL divergence does not fit the loss: for {right.loss}, "
            f"over {rows:.0f} rows in {batches:.0f} batches an epoch, the evidence "
            f"lower bound has kl_weight={right.weight:.4g}. Pass that to the layers, "
            "or train with `tfbbb.BayesianModel`, which sets it. If you chose the "
            "temperature or another number of rows, pass `check_objective=False`. "
            f"Received: kl_weight of {received}"
        )
    if weights and max(weights.values()) > min(weights.values()) * TOLERANCE:
        received = ", ".join(
            f"{name}: {weight:.4g}" for name, weight in weights.items()
        )
        return (
            "The layers have different weights of the KL divergence, so the objective "
            "is not an evidence lower bound. Pass the same `kl_weight` to all layers, "
            "or `check_objective=False` if the difference is intended. "
            f"Received: kl_weight of {received}"
        )
    return None


@dataclass(frozen=True)
class RightWeight:
    """The weight of the divergence that fits a loss.

    Attributes:
        weight: The right weight, or an upper bound of it.
        certain: Whether `weight` is exact. It is a bound for a loss whose averages over
            outputs are not known: each such average makes the right weight smaller.
        loss: Description of the loss.
    """

    weight: float
    certain: bool
    loss: str

    def refutes(self, weight: float) -> bool:
        """Whether a layer's weight is certainly wrong."""
        too_light = self.certain and weight < self.weight / TOLERANCE
        return too_light or weight > self.weight * TOLERANCE


def _given_weights(model: keras.Model) -> dict[str, float]:
    return {
        name: float(layer.kl_weight.numpy())
        for name, layer in named_layers(model).items()
        if not layer.kl_weight_is_automatic
    }


def _right_weight(model: keras.Model, rows: float, batches: float) -> RightWeight:
    losses = tree.flatten(model.loss)
    if len(losses) != 1 or losses[0] is None:
        return RightWeight(math.inf, False, "the losses of several outputs")
    loss = losses[0]
    function = _function(loss)
    name = getattr(loss, "name", None) or getattr(function, "__name__", "loss")
    summed = getattr(loss, "reduction", None) == "sum"
    weight = 1.0 / batches if summed else 1.0 / rows
    says = f"the loss '{name}', " + (
        "added up over rows (reduction='sum')" if summed else "averaged over rows"
    )
    averaged = _averaged(loss, function, _output_shape(model), summed)
    if averaged is None:
        return RightWeight(weight, False, says)
    if averaged > 1:
        says += f" and over {averaged} outputs of a row"
        if not summed:
            says += " (`tfbbb.losses.NegativeLogLikelihood` adds those up)"
    return RightWeight(weight / averaged, True, says)


def _function(loss: object) -> object:
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    return getattr(loss, "fn", loss)


def _output_shape(model: keras.Model) -> tuple[int | None, ...] | None:
    try:
        shape = model.output_shape
    except (AttributeError, ValueError):
        # A subclassed model has no output shape before it knows its input.
        return None
    return shape if isinstance(shape, tuple) else None


def _averaged(
    loss: object, function: object, shape: tuple[int | None, ...] | None, summed: bool
) -> int | None:
    """Returns how many outputs of a row the loss averages over; None if unknown."""
    if isinstance(loss, NegativeLogLikelihood):
        return 1
    if function not in _MEANS_OVER_OUTPUTS + _SUMS_OVER_CLASSES or shape is None:
        return None
    over = [] if summed else list(shape[1:-1])
    if function in _MEANS_OVER_OUTPUTS:
        over.append(shape[-1])
    return None if None in over else math.prod(size for size in over if size)
