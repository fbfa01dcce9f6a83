"""Draws of weights from moments that a SavedModel holds anyway."""

from typing import Any

import keras

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.draws import Tensors, draw
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program
from tfbbb.recalibration.recalibration import Recalibration


class DrawnFromMoments(Program):
    """A program that draws weights, of known mean and variance where these are enough.

    Independent normals are. So a SavedModel whose signatures draw pre-activations can
    draw weights too, without the variables of the posteriors. The draws are those of
    the posteriors, up to rounding.

    Args:
        model: A built Keras model.
        likelihood: That of its output.
        plan: What is drawn: weights alone.
        inputs: Specs of the inputs.
        recalibration: What changes the outputs.
        moments: Moments of all weights that are held, by layer, as variables.
    """

    def __init__(
        self,
        model: keras.Model,
        likelihood: Likelihood,
        plan: Plan,
        inputs: Any,
        recalibration: Recalibration,
        moments: Tensors,
    ):
        super().__init__(model, [likelihood], plan, inputs, recalibration)
        self._held = {
            place.key: moments[place.key]
            for place in self.structure.places
            if place.key in moments and _is_normal(place.layer)
        }

    def draws(self, seed: Any, first: Any, count: Any) -> Tensors:
        return draw(self.structure, self.plan, seed, first, count, self._held)


def _is_normal(layer: Any) -> bool:
    """Whether draws from a layer's moments are those from its posterior."""
    return layer.compute_dtype == "float32" and all(
        weight.posterior.factorised
        and not weight.posterior.deterministic
        and weight.posterior.noise_shape(weight.shape) == tuple(weight.shape)
        for weight in layer.variational_weights
    )
