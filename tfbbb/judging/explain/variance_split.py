"""How much of the uncertainty of each row more data would remove."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.base.types import Array, Config

if TYPE_CHECKING:
    from tfbbb.prediction import Predictive


@dataclass(frozen=True)
class VarianceSplit:
    """The uncertainty of each row and its parts.

    Attributes:
        measure: `"variance"` of a number, or `"entropy"` of a class in nats.
        epistemic: The part that more data would remove, [n]: the variance of the mean
            under the posterior; of classes the mutual information of class and
            weights.
        aleatoric: The part that more data would not remove, [n].
        between_members: The part of `epistemic` between members, [n]; zero for classes.
    """

    measure: str
    epistemic: np.ndarray
    aleatoric: np.ndarray
    between_members: np.ndarray

    @property
    def epistemic_share(self) -> np.ndarray:
        """The epistemic part of each row's uncertainty, [n], from 0 to 1."""
        total = self.epistemic + self.aleatoric
        return np.divide(
            self.epistemic, total, out=np.zeros_like(total), where=total > 0
        )

    def to_dict(self, rows: np.ndarray) -> Config:
        """Returns the split as plain JSON values; rows are counted from 1 in them."""
        return {
            "measure": self.measure,
            "mean_epistemic_share": float(self.epistemic_share.mean()),
            "row": (rows + 1).tolist(),
            "epistemic": self.epistemic.tolist(),
            "aleatoric": self.aleatoric.tolist(),
            "between_members": self.between_members.tolist(),
        }


def variance_split(prediction: "Predictive") -> VarianceSplit:
    """Splits the uncertainty of each row of a prediction."""
    if hasattr(prediction, "probabilities"):
        entropy = np.asarray(prediction.entropy, np.float64)
        epistemic = np.clip(prediction.mutual_information, 0.0, entropy)
        return VarianceSplit(
            "entropy", epistemic, entropy - epistemic, np.zeros_like(entropy)
        )

    def of_one_target(values: Array) -> np.ndarray:
        return np.asarray(values, np.float64).reshape(len(prediction), -1).sum(axis=1)

    return VarianceSplit(
        "variance",
        of_one_target(prediction.epistemic),
        of_one_target(prediction.aleatoric),
        of_one_target(prediction.between_members),
    )
