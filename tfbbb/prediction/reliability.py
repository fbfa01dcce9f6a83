"""Accuracy of predicted classes against their probabilities."""

from dataclasses import dataclass

import numpy as np

from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import binned_confidences


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Accuracy against confidence, the probability of the predicted class.

    Attributes:
        edges: Edges of the bins of the confidence, [bins + 1], from 0 to 1. A bin
            includes its upper edge.
        counts: Number of rows in each bin, [bins].
        confidence: Mean confidence of the rows of each bin, [bins]; NaN for an empty
            bin.
        accuracy: Share of right predictions in each bin, [bins]; NaN for an empty bin.
    """

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @classmethod
    def of(
        cls, prediction: Predictive, targets: np.ndarray, bins: int
    ) -> "ReliabilityDiagram":
        """Computes the diagram; see `tfbbb.metrics.reliability_diagram`."""
        found = binned_confidences(prediction, targets, bins)
        index, confidence, right = (np.ravel(values) for values in found)
        counts = np.bincount(index, minlength=bins)
        confidences = np.bincount(index, confidence, minlength=bins)
        rights = np.bincount(index, right, minlength=bins)
        edges = np.linspace(0.0, 1.0, bins + 1)
        with np.errstate(invalid="ignore"):
            return cls(edges, counts, confidences / counts, rights / counts)
