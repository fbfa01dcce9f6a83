"""How uncertain a model is about rows that it was not trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tfbbb.base.types import ArrayLike

if TYPE_CHECKING:
    import numpy as np

    from tfbbb.prediction import Predictive

_NUM_QUANTILES = 201


@dataclass(frozen=True)
class EpistemicReference:
    """The epistemic uncertainty of rows that a model was not trained on.

    The uncertainty of a row is `Var_w[E[y | w]]`, of several targets their sum after a
    division by `scales`, and of classes the mutual information of class and weights. Of
    rows that are like those of the reference, q % have a percentile of q or less.

    That is exact if the rows of `of` and of `percentiles` share the draws: predict them
    with the same `method`, `num_samples` and `seed`. S draws estimate a variance with a
    relative error of about `sqrt(4 / S)`, because half of them mirror the others, and
    with other draws the rows have another error than the reference.

    Args:
        quantiles: Quantiles of the uncertainty at evenly spaced levels from 0 to 1.
        scales: The unit of each target's variance; empty for classes.
        num_rows: Number of rows of the reference.
        factor: What the uncertainties of these rows were multiplied by because some
            members were trained on them; 1 for rows that no member was trained on.
        num_samples: Number of draws behind the uncertainties of the reference; None for
            those of the exported model by default.
        seed: Seed of these draws; None for that of the exported model by default.

    Raises:
        ValueError: The numbers contradict each other.

    Example:

    >>> import numpy as np
    >>> seen = {"epistemic": np.linspace(1.0, 2.0, 101)[:, None]}
    >>> reference = EpistemicReference.of(seen)
    >>> reference.percentiles({"epistemic": np.array([[0.5], [1.9], [7.0]])}).round()
    array([  0.,  90., 100.])
    """

    quantiles: tuple[float, ...]
    scales: tuple[float, ...]
    num_rows: int
    factor: float = 1.0
    num_samples: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        ascending = all(
            low <= high
            for low, high in zip(self.quantiles, self.quantiles[1:], strict=False)
        )
        if len(self.quantiles) < 2 or not ascending:
            raise ValueError("quantiles must be two or more numbers that ascend")
        if not all(scale > 0 for scale in self.scales):
            raise ValueError(f"scales must be positive. Received: {self.scales}")

    @classmethod
    def of(
        cls,
        prediction: "Predictive | Mapping[str, ArrayLike]",
        *,
        factor: float = 1.0,
    ) -> Self:
        """Makes the reference of predicted rows.

        Args:
            prediction: The prediction of the rows, or its summaries by name.
            factor: The factor of their uncertainties.
        """
        import numpy as np

        outputs = _summaries(prediction)
        scales: tuple[float, ...] = ()
        if "mutual_information" not in outputs:
            variances = _by_target(outputs["epistemic"])
            found = np.median(variances, axis=0)
            scales = tuple(np.where(found > 0, found, 1.0).tolist())
        uncertainty = factor * _uncertainty(outputs, scales)
        levels = np.linspace(0.0, 1.0, _NUM_QUANTILES)
        quantiles = np.quantile(uncertainty, levels).tolist()
        return cls(
            tuple(quantiles),
            scales,
            len(uncertainty),
            float(factor),
            *_draws(prediction),
        )

    def percentiles(
        self, prediction: "Predictive | Mapping[str, ArrayLike]"
    ) -> "np.ndarray":
        """Returns the percentile of each row's uncertainty, [rows], from 0 to 100.

        Args:
            prediction: The prediction of the rows, or its summaries by name.
        """
        import numpy as np

        uncertainty = _uncertainty(_summaries(prediction), self.scales)
        return np.interp(
            uncertainty, self.quantiles, np.linspace(0.0, 100.0, len(self.quantiles))
        )


def _summaries(
    prediction: "Predictive | Mapping[str, ArrayLike]",
) -> Mapping[str, ArrayLike]:
    return prediction if isinstance(prediction, Mapping) else prediction.to_numpy()


def _draws(
    prediction: "Predictive | Mapping[str, ArrayLike]",
) -> tuple[int | None, int | None]:
    """Returns number and seed of the draws that all rows share; None if unknown."""
    number = getattr(prediction, "num_samples", None)
    if isinstance(prediction, Mapping) or not isinstance(number, int):
        return None, None
    return number, prediction.seed


def _uncertainty(
    outputs: Mapping[str, ArrayLike], scales: Sequence[float]
) -> "np.ndarray":
    """Returns the uncertainty of each row, [rows]."""
    import numpy as np

    if not scales:
        found = np.asarray(outputs["mutual_information"], np.float64)
        return found.reshape(len(found), -1).sum(axis=-1)
    return (_by_target(outputs["epistemic"]) / scales).sum(axis=-1)


def _by_target(variances: ArrayLike) -> "np.ndarray":
    """Returns variances of all places of a row, [rows, k]."""
    import numpy as np

    variances = np.asarray(variances, np.float64)
    return variances.reshape(len(variances), -1)
