"""Early stopping by the loss on held-out rows."""

import math
from collections.abc import Sequence

import keras
import numpy as np

from tfbbb.base.types import Config
from tfbbb.training.spec.training import EarlyStopping


class BestEpoch:
    """The epoch with the smallest `val_nll` so far, and its weights.

    Attributes:
        epoch: The best epoch; 0 before the first validation.
        val_nll: `val_nll` of the best epoch.
        weights: Weights of the best epoch; empty before the first validation.

    Args:
        rule: The early stopping of the spec.
    """

    def __init__(self, rule: EarlyStopping):
        self._rule = rule
        self.epoch = 0
        self.val_nll = math.inf
        self.weights: Sequence[np.ndarray] = []

    def update(self, model: keras.Model, epoch: int, val_nll: float) -> None:
        """Updates the best epoch after a validation."""
        if val_nll < self.val_nll - self._rule.min_delta:
            self.epoch, self.val_nll = epoch, val_nll
            self.weights = model.get_weights()

    def is_out_of_patience(self, epoch: int) -> bool:
        """Returns whether the best epoch is too long ago."""
        return epoch - self.epoch >= self._rule.patience

    def restore(self, model: keras.Model) -> int | None:
        """Restores the best weights and returns their epoch; None without any."""
        if not self.epoch:
            return None
        model.set_weights(self.weights)
        return self.epoch

    def state(self) -> Config:
        """Returns the state without the weights, as plain JSON values."""
        return {"epoch": self.epoch, "val_nll": self.val_nll if self.epoch else None}

    def load_state(self, state: Config, weights: Sequence[np.ndarray]) -> None:
        """Restores the result of `state`, with its weights."""
        self.epoch = state["epoch"]
        self.val_nll = state["val_nll"] if self.epoch else math.inf
        self.weights = weights
