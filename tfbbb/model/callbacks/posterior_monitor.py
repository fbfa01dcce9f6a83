"""A callback that reports the posterior of every variational layer."""

import os
import warnings

import keras
import numpy as np

from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Logs
from tfbbb.layers.named_layers import named_layers
from tfbbb.model.callbacks.event_file import EventFile
from tfbbb.model.callbacks.layer_posterior import (
    COLLAPSED_BELOW,
    COLLAPSED_SHARE,
    CURE_OF_COLLAPSE,
    LayerPosterior,
    layer_posterior,
)
from tfbbb.model.callbacks.objective_check import objective_mismatch

# Every epoch has the same buckets, so that epochs can be compared. The outermost
# buckets count the ratios beyond: a mean of exactly 0 is at minus infinity, a point
# posterior at infinity.
_DECIBELS = np.linspace(-60.0, 60.0, 61)


class PosteriorMonitor(keras.callbacks.Callback):
    """Reports statistics of the posterior of each variational layer.

    At the end of an epoch, adds for each layer to the logs, and so to the history,

    - `kl/LAYER`: KL(q || p) in nats, summed over the layer's weights;
    - `bits_per_weight/LAYER`: the KL in bits, divided by the number of weights: the
      cost of sending a weight with bits-back coding (Hinton and van Camp 1993);
    - `snr_median/LAYER`: the median of `|mean| / stddev` (Blundell et al. 2015);
    - `collapsed/LAYER`: the share of weights with a KL below `collapsed_below`, which
      have learned nothing from the data. This share is exact, and is reported only if
      the weights are normal under q and independent normals under p. For weights that
      depend on each other under q it uses their marginals;

    and to the history alone

    - `snr_decibels/LAYER`: a histogram of `10 log10(|mean| / stddev)`, as the numbers
      of weights in 60 buckets from -60 to 60 dB.

    The parts of a layer, such as the projections of an attention layer, have statistics
    of their own: `kl/attention_query`. With `log_dir`, the callback also writes all
    statistics for TensorBoard.

    The callback warns once for each layer if more than `collapsed_share` of its weights
    have collapsed. After the first epoch it warns if the loss and the `kl_weight` of
    the layers do not form an evidence lower bound (the loss is summed over rows,
    averages over the outputs of a row, or is taken over another number of rows).

    It works for `BayesianModel` and for any other Keras model, and costs time only at
    the end of an epoch.

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
    ['bits_per_weight/dense', 'collapsed/dense', 'kl/dense', 'loss',
     'snr_decibels/dense', 'snr_median/dense']

    Args:
        log_dir: Directory for TensorBoard's event files; None writes no files.
        every: Number of epochs from one report to the next.
        collapsed_below: KL in nats below which a weight counts as collapsed. The
            default is the KL of a mean 0.14 prior standard deviations from the prior
            mean, or of a standard deviation a tenth off the prior's.
        collapsed_share: The callback warns if the share of collapsed weights of a layer
            exceeds this.
        num_samples: Number of draws for a divergence without a closed form; their
            seed is fixed.
        check_objective: Whether to compare the loss with the `kl_weight` of the layers.

    Raises:
        ValueError: `every` or `num_samples` is not a positive integer,
            `collapsed_below` is not positive, `collapsed_share` is not between 0 and 1,
            or `check_objective` is not a boolean.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        every: int = 1,
        *,
        collapsed_below: float = COLLAPSED_BELOW,
        collapsed_share: float = COLLAPSED_SHARE,
        num_samples: int = 16,
        check_objective: bool = True,
    ):
        super().__init__()
        for name, value in (("every", every), ("num_samples", num_samples)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"`{name}` must be a positive integer. Received: {name}={value!r}"
                )
        positive_number("collapsed_below", collapsed_below)
        if positive_number("collapsed_share", collapsed_share) > 1:
            raise ValueError(
                "`collapsed_share` must be at most 1. "
                f"Received: collapsed_share={collapsed_share!r}"
            )
        if not isinstance(check_objective, bool):
            raise ValueError(
                "`check_objective` must be True or False. "
                f"Received: check_objective={check_objective!r}"
            )
        self.log_dir = log_dir
        self.every = every
        self.collapsed_below = collapsed_below
        self.collapsed_share = collapsed_share
        self.num_samples = num_samples
        self.check_objective = check_objective
        self._events: EventFile | None = None
        self._warned: set[str] = set()
        self._unchecked = check_objective
        self._iterations = 0
        self._rows: float | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.log_dir is not None:
            self._events = EventFile(self.log_dir)
        self._unchecked = self.check_objective

    def on_train_end(self, logs: Logs = None) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._iterations = int(self.model.optimizer.iterations.numpy())
        self._rows = None

    def on_test_begin(self, logs: Logs = None) -> None:
        # Validation resets the metrics and counts its own rows.
        self._rows = _rows_seen(self.model)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._unchecked:
            self._check_objective()
        if (epoch + 1) % self.every:
            return
        for name, layer in named_layers(self.model).items():
            posterior = layer_posterior(layer, self.num_samples)
            self._report(name, posterior, epoch, {} if logs is None else logs)

    def _check_objective(self) -> None:
        self._unchecked = False
        rows = _rows_seen(self.model) if self._rows is None else self._rows
        batches = int(self.model.optimizer.iterations.numpy()) - self._iterations
        if rows and batches:
            mismatch = objective_mismatch(self.model, rows, batches)
            if mismatch is not None:
                warnings.warn(mismatch, stacklevel=2)

    def _report(
        self, name: str, posterior: LayerPosterior, epoch: int, logs: dict[str, float]
    ) -> None:
        figures = {
            f"kl/{name}": posterior.kl,
            f"bits_per_weight/{name}": posterior.bits_per_weight,
            f"snr_median/{name}": float(np.median(posterior.signal_to_noise)),
        }
        collapsed = posterior.collapsed(self.collapsed_below)
        if collapsed is not None:
            figures[f"collapsed/{name}"] = collapsed
            self._warn_of_collapse(name, collapsed)
        logs.update(figures)
        key, counts = f"snr_decibels/{name}", _counts(posterior.signal_to_noise)
        # Logs may hold numbers only, for progress bars and tables.
        self.model.history.history.setdefault(key, []).append(counts.tolist())
        if self._events is None:
            return
        for figure, value in figures.items():
            self._events.scalar(figure, value, epoch)
        self._events.histogram(key, counts, _DECIBELS, epoch)

    def _warn_of_collapse(self, name: str, collapsed: float) -> None:
        if collapsed <= self.collapsed_share or name in self._warned:
            return
        self._warned.add(name)
        warnings.warn(
            f"The posterior of the layer '{name}' has collapsed onto its prior: "
            f"{collapsed:.0%} of its weights are less than {self.collapsed_below} nats "
            "from the prior and have learned nothing from the data. To use more "
            f"weights, try {CURE_OF_COLLAPSE}.",
            stacklevel=2,
        )


def _counts(ratios: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        decibels = 10.0 * np.log10(ratios[~np.isnan(ratios)])
    return np.histogram(np.clip(decibels, _DECIBELS[0], _DECIBELS[-1]), _DECIBELS)[0]


def _rows_seen(model: keras.Model) -> float | None:
    """Returns the number of rows in the running mean of the loss, if there is one."""
    for metric in model.metrics:
        if metric.name == "loss" and isinstance(metric, keras.metrics.Mean):
            return float(metric.count.numpy())
    return None
