"""A callback that reports the posterior of every variational layer."""

import warnings

import keras
import numpy as np

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Logs
from tfbbb.layers.named_layers import named_layers
from tfbbb.model.callbacks.layer_posterior import (
    COLLAPSED_BELOW,
    COLLAPSED_SHARE,
    CURE_OF_COLLAPSE,
    layer_posterior,
)


class PosteriorMonitor(keras.callbacks.Callback):
    """Reports statistics of the posterior of each variational layer.

    At the end of an epoch, adds for each layer to the logs, and so to the history and
    to the callbacks after it, such as `keras.callbacks.TensorBoard`,

    - `kl/LAYER`: KL(q || p) in nats, summed over the layer's weights;
    - `bits_per_weight/LAYER`: the KL in bits, divided by the number of weights: the
      cost of sending a weight with bits-back coding (Hinton and van Camp 1993);
    - `snr_median/LAYER`: the median of `|mean| / stddev` (Blundell et al. 2015);
    - `collapsed/LAYER`: the share of weights with a KL below 0.01 nats, which have
      learned nothing from the data. This share is exact, and is reported only if the
      weights are normal under q and independent normals under p. For weights that
      depend on each other under q it uses their marginals.

    The parts of a layer, such as the projections of an attention layer, have statistics
    of their own: `kl/attention_query`. The callback warns once for each layer if more
    than nine tenths of its weights have collapsed. It works for `BayesianModel` and for
    any other Keras model, and costs time only at the end of an epoch.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(1, kl_weight=1 / 80, name="dense"),
    ... ])
    >>> model.compile("adam", loss="mse")
    >>> x = np.random.normal(size=(80, 3))
    >>> history = model.fit(
    ...     x, x[:, :1], verbose=0, callbacks=[tfbbb.callbacks.PosteriorMonitor()]
    ... ).history
    >>> sorted(history)
    ['bits_per_weight/dense', 'collapsed/dense', 'kl/dense', 'loss', 'snr_median/dense']

    Args:
        every: Number of epochs from one report to the next.

    Raises:
        ValueError: `every` is not a positive integer.
    """

    def __init__(self, every: int = 1):
        super().__init__()
        self.every = positive_integer("every", every)
        self._warned: set[str] = set()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if (epoch + 1) % self.every:
            return
        logs = {} if logs is None else logs
        for name, layer in named_layers(self.model).items():
            posterior = layer_posterior(layer)
            logs[f"kl/{name}"] = posterior.kl
            logs[f"bits_per_weight/{name}"] = posterior.bits_per_weight
            logs[f"snr_median/{name}"] = float(np.median(posterior.signal_to_noise))
            if posterior.collapsed is not None:
                logs[f"collapsed/{name}"] = posterior.collapsed
                self._warn_of_collapse(name, posterior.collapsed)

    def _warn_of_collapse(self, name: str, collapsed: float) -> None:
        if collapsed <= COLLAPSED_SHARE or name in self._warned:
            return
        self._warned.add(name)
        warnings.warn(
            f"The posterior of the layer '{name}' has collapsed onto its prior: "
            f"{collapsed:.0%} of its weights are less than {COLLAPSED_BELOW} nats "
            "from the prior and have learned nothing from the data. To use more "
            f"weights, try {CURE_OF_COLLAPSE}.",
            stacklevel=2,
        )
