"""Evaluates the loss on held-out rows."""

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Structure
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.devices import run_on_replicas

_ROWS_AT_ONCE = 4096


class HeldOutEvaluator:
    """Measures the negative log likelihood of held-out rows, block by block.

    Draws new weights for each block, as `BayesianModel.evaluate` does.

    Args:
        model: The model.
        inputs: Inputs of the held-out rows.
        targets: Targets of the held-out rows.
        weights: Their weights, [rows]; None for 1.
    """

    def __init__(
        self,
        model: BayesianModel,
        inputs: Structure,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ):
        self._model = model
        given = (inputs, targets) if weights is None else (inputs, targets, weights)
        rows = tf.data.Dataset.from_tensor_slices(given)
        self._blocks = rows.batch(_ROWS_AT_ONCE)
        self._take = tf.function(
            lambda *block: run_on_replicas(
                model.distribute_strategy, model.test_step, block
            ),
            input_signature=self._blocks.element_spec,
            autograph=False,
        )

    def nll(self) -> float:
        """Returns the mean per row, in nats; resets the metrics of the model."""
        self._model.reset_metrics()
        for block in self._blocks:
            self._take(*block)
        nll = float(self._model.get_metrics_result()["nll"])
        self._model.reset_metrics()
        return nll
