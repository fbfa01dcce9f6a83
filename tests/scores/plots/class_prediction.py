"""A prediction of classes, with the interface of `Predictive`."""

from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class ClassPrediction:
    """Probabilities [rows, C] which the draws agree upon, by default."""

    probabilities: np.ndarray
    mutual_information: np.ndarray | None = None

    @property
    def mean(self):
        return self.probabilities

    @property
    def aleatoric(self):
        return self.probabilities * (1.0 - self.probabilities)

    @property
    def entropy(self):
        return special.entr(self.probabilities).sum(axis=-1)
