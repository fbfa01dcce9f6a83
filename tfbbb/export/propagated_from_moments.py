"""Moments that are propagated from moments of weights that a SavedModel holds."""

import contextlib
from typing import Any

from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.propagated import PropagatedProgram


class PropagatedFromMoments(PropagatedProgram):
    """A program that propagates moments, without the variables of the posteriors.

    What it reads of the weights are means, and variances and squares of kernels that
    were computed when it was exported.
    """

    def moments(self) -> Tensors:
        return super().moments() | {"means": dict(self._means())}

    def outputs(self, inputs: Any, moments: Tensors, draws: Tensors) -> list[Any]:
        with contextlib.ExitStack() as stack:
            for name, weight in self._weights():
                stack.enter_context(weight.of_mean(moments["means"][name]))
            return super().outputs(inputs, moments, draws)

    def _means(self) -> Any:
        return ((name, weight.mean) for name, weight in self._weights())

    def _weights(self) -> Any:
        for place in self.structure.places:
            for weight in place.layer.variational_weights:
                yield f"{place.key}/{weight.name}", weight
