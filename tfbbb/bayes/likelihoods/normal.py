"""The Gaussian likelihood."""

from __future__ import annotations

from tfbbb.base.lazy import keras
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.normal_noise import NormalNoise


@register("normal", "A number with normal noise.")
class Normal(NormalNoise):
    """Normal targets: `p(y | f) = N(y; shift + scale * f, (scale * noise)^2)`.

    `shift` and `scale` are mean and standard deviation of the training targets, fixed
    at the first `fit` of a `tfbbb.BayesianModel`, so that the network works in standard
    units and the user in the units of the table. They are 0 and 1 until then. `noise`
    is one of

    - learned and the same for all rows (the default): a maximum-likelihood point
      estimate, one per target; the network gives k outputs;
    - a given number, in the units of the targets: `Normal(scale=2.0)`;
    - a second output per target (`heteroscedastic=True`): the network gives 2k outputs,
      first the k means, then k numbers whose softplus is the noise.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    >>> likelihood.num_outputs(1)
    2

    With `standardize=False` the network gives the mean in the units of the targets:
    `p(y | f) = N(y; f, (scale * noise)^2)`. This suits a network that was trained on
    raw targets, and a network whose prior is the posterior of such a network. A learned
    noise still starts at `scale`.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        scale: Standard deviation of the noise in the units of the targets, positive;
            None to learn it.
        standardize: Whether the network works in standard units.
        resolution: Step r between possible targets, such as 1 for whole numbers, in the
            units of the targets; the scale is then at least `r / sqrt(12)`, that of
            rounding. None for targets that may be any number.

    Raises:
        ValueError: `scale` is not positive and finite, or is given together with
            `heteroscedastic=True`.
    """

    integrates_location = True
    # An output of 0 gives the noise log 2; saved networks depend on this.
    _noise_offset = 0.0

    @property
    def raw_noise(self) -> keras.Variable:
        """The learned parameter, [k]: its softplus is the noise in standard units."""
        return self._learned["noise"]
