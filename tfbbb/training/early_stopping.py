"""The end of a training whose held-out rows get no better."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tfbbb.training.spec.training import EarlyStopping


class BestEpoch:
    """The epoch whose `val_nll` is least so far, and its weights.

    Attributes:
        epoch: That epoch; 0 before the first validation.
        val_nll: Its `val_nll`.
        weights: Its weights, none before the first validation.

    Args:
        rule: When to stop.
    """

    def __init__(self, rule: EarlyStopping):
        self._rule = rule
        self.epoch = 0
        self.val_nll = math.inf
        self.weights: Sequence[np.ndarray] = []

    def update(self, model: keras.Model, epoch: int, val_nll: float) -> None:
        """Takes note of a validation."""
        if val_nll < self.val_nll - self._rule.min_delta:
            self.epoch, self.val_nll = epoch, val_nll
            self.weights = model.get_weights()

    def is_out_of_patience(self, epoch: int) -> bool:
        """Whether to wait no longer for a better one."""
        return epoch - self.epoch >= self._rule.patience

    def restore(self, model: keras.Model) -> int | None:
        """Gives the model its weights, and returns the epoch, if so wished."""
        if not (self._rule.restore_best and self.epoch):
            return None
        model.set_weights(self.weights)
        return self.epoch

    def state(self) -> dict[str, Any]:
        """Returns what is not an array, as plain JSON values."""
        return {"epoch": self.epoch, "val_nll": self.val_nll if self.epoch else None}

    def load_state(
        self, state: Mapping[str, Any], weights: Sequence[np.ndarray]
    ) -> None:
        """Goes on from a `state` and its weights."""
        self.epoch = state["epoch"]
        self.val_nll = state["val_nll"] if self.epoch else math.inf
        self.weights = weights
