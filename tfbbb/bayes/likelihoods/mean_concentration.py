"""The base class of likelihoods with a mean and a concentration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Regression,
    Standardize,
    positive,
    soft_limit,
)

# Beyond this concentration a normal is as good, and TensorFlow's incomplete gamma and
# beta functions lose precision.
LARGEST_CONCENTRATION = 1e5
Concentration = Annotated[
    PositiveNumber | None,
    Field(
        le=LARGEST_CONCENTRATION,
        description="Null to learn it.",
    ),
]


class MeanConcentration(Regression):
    """A density with a mean and a concentration; a larger one lowers the variance.

    The network gives the mean through a link function, in standard units of the linked
    mean. The concentration is learned, given, or an output:

        1 / concentration = noise^2 / c + 1e-5

    At the mean of the training targets, the concentration c gives their variance, and
    initially `noise` is 1.

    Args:
        heteroscedastic: Whether the network gives the concentration of each row, after
            the k means.
        concentration: The concentration, positive and 1e5 at most; None to learn it.
    """

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        concentration: Concentration = None,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        super().__init__(
            heteroscedastic=heteroscedastic, standardize=standardize, **kwargs
        )
        if concentration is not None:
            positive_number("concentration", concentration)
            if concentration > LARGEST_CONCENTRATION:
                raise ValueError(
                    f"`concentration` must be {LARGEST_CONCENTRATION:.0e} at most; "
                    "beyond, `Normal` is as good. "
                    f"Received: concentration={concentration}"
                )
        self.concentration = concentration
        self._check_noise()

    # The two parameters of the density, [..., k] each, of outputs; and quantiles, of
    # levels and these, in float64: single precision has no upper tail.
    _parameters: Callable[..., tuple[Tensor, ...]]
    _inverse: Callable[..., Tensor]

    def _concentration(
        self,
        raw: dict[str, Tensor],
        initial: Tensor,
        largest_inverse: Tensor | None = None,
    ) -> Tensor:
        """Returns the concentration, [..., k]."""
        location = raw["location"]
        if self.concentration is not None:
            concentration = ops.constant(self.concentration, location.dtype)
        else:
            inverse = ops.square(positive(raw["noise"])) / initial
            if largest_inverse is not None:
                inverse = soft_limit(inverse, largest_inverse)
            concentration = 1.0 / (inverse + 1.0 / LARGEST_CONCENTRATION)
        return ops.broadcast_to(concentration, ops.shape(location))

    def _check_concentration(self, initial: np.ndarray, values: np.ndarray) -> None:
        """Raises ValueError if the targets vary less than the density can."""
        too_close = initial > LARGEST_CONCENTRATION
        if too_close.any():
            column = int(np.argmax(too_close))
            raise ValueError(
                f"Target {column} varies too little for {type(self).__name__}; "
                "`Normal` is as good there. "
                f"Received: a mean of {values[:, column].mean():.6g} with a standard "
                f"deviation of {values[:, column].std():.2g}"
            )

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        parameters = self._parameters(ops.cast(outputs, "float64"))
        found = self._inverse(ops.cast(levels, "float64"), *parameters)
        return ops.cast(found, self.at_least_float32(outputs).dtype)
