"""The base class of likelihoods whose network gives the logarithm of a location."""

from __future__ import annotations

import math

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.support import LARGEST_TARGET, Support
from tfbbb.bayes.likelihoods.regression import Regression, soft_clip

_LARGEST_LOG = math.log(LARGEST_TARGET)
# Limit of the distance of a location from the range of the training targets.
_MARGIN = 0.5
# Up to e times the mean of the training targets, no location is absurd, and small ones
# hardly are.
_LEAST_DISTANCE, _SMALLEST_SHARE = 1.0, 0.1
# A tail is less than this many times as long as the greatest training target.
_LONGEST_TAIL = math.log(4.0)
_LARGEST_POWER = 80.0

POSITIVE = Support(1.0 / LARGEST_TARGET, LARGEST_TARGET)


class LogLink(Regression):
    """A likelihood with a location on the scale of `log y`, bounded by the targets.

    The mean grows exponentially in the location, so that one draw of the weights could
    own the average over all draws. The location is therefore left as it is between the
    logarithms of a tenth of the least training target and of the greatest, or of e
    times their mean if that is more; beyond, it approaches a bound at a distance of 1/2
    (see `soft_clip`). For a least count of 0, the rate of one event in all rows takes
    its place. What `tfbbb.Extrapolation` adds to a location is not bounded.
    """

    _widest_range = (-_LARGEST_LOG, _LARGEST_LOG)
    # What the first outputs are, with `standardize=False`.
    location_name = "logarithm of the mean"

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        least = values.min(axis=0)
        least = np.where(least > 0.0, least, 1.0 / len(values))
        centre = np.log(values.mean(axis=0))
        high = np.maximum(np.log(values.max(axis=0)), centre + _LEAST_DISTANCE)
        return np.log(_SMALLEST_SHARE * least), high

    def locations(
        self, targets: ArrayLike, exposures: ArrayLike = None
    ) -> np.ndarray | None:
        values = self.check_targets(targets)
        # A count of 0 has no logarithm.
        least = np.exp(self.target_low.numpy().astype(np.float64))
        return self._unlocated(np.log(np.maximum(values, least)))

    @property
    def _appended(self) -> str | None:
        return "further_location"

    def with_further_location(self, outputs: Tensor, further: Tensor) -> Tensor:
        """Appends `further`, which acts beyond the bounds: see `_moved`."""
        return self._with_appended(outputs, further)

    def _moved(self, locations: Tensor, raw: dict[str, Tensor]) -> Tensor:
        """Returns bounded locations on the scale of `log y`, moved by what is further.

        A further d multiplies `y` by `1 + d / (1 + |d|)`, about 1 + d for a small one,
        or divides it by 1 + |d| where d < 0. The mean of this factor is 1 for every
        symmetric d, so what is not known of a location does not raise the mean.
        """
        if "further_location" not in raw:
            return locations
        further = self.log_units(raw["further_location"])
        return locations + ops.log1p(further / (1.0 + ops.abs(further)))

    def log_units(self, further: Tensor) -> Tensor:
        """Returns differences of locations of the network as those of `log y`."""
        if not self.standardize:
            return further
        return self._value(self.target_scale, further) * further

    def _bounded(self, locations: Tensor) -> Tensor:
        """Returns locations on the scale of `log y` within their bounds, [..., k]."""
        low = self._value(self.target_low, locations)
        high = self._value(self.target_high, locations)
        return soft_clip(locations, low, high, _MARGIN)

    def _longest_tail(self, locations: Tensor) -> Tensor:
        """Returns the length of the longest tail over `exp(locations)`, [..., k]."""
        # Before `adapt` it may not be finite in single precision.
        return ops.exp(
            ops.minimum(self._log_of_longest_tail(locations), _LARGEST_POWER)
        )

    def _log_of_longest_tail(self, locations: Tensor) -> Tensor:
        """Returns the log of the length of the longest tail, which is positive."""
        return self._value(self.target_high, locations) + _LONGEST_TAIL - locations
