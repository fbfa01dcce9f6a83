"""Evaluates the loss on held-out rows."""

from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.model import BayesianModel

_ROWS_AT_ONCE = 4096


class HeldOutEvaluator:
    """Measures the negative log likelihood of held-out rows, block by block.

    Draws new weights for each block, as `BayesianModel.evaluate` does.

    Args:
        model: The model.
        inputs: Inputs of the held-out rows.
        targets: Targets of the held-out rows.
    """

    def __init__(self, model: BayesianModel, inputs: Any, targets: np.ndarray):
        self._model = model
        rows = tf.data.Dataset.from_tensor_slices((inputs, targets))
        self._blocks = rows.batch(_ROWS_AT_ONCE)
        self._take = tf.function(
            lambda inputs, targets: model.test_step((inputs, targets)),
            input_signature=self._blocks.element_spec,
        )

    def nll(self) -> float:
        """Returns the mean per row, in nats; resets the metrics of the model."""
        self._model.reset_metrics()
        for inputs, targets in self._blocks:
            self._take(inputs, targets)
        nll = float(self._model.get_metrics_result()["nll"])
        self._model.reset_metrics()
        return nll
