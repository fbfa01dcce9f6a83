"""The signatures of an exported posterior predictive."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfbbb import noise
from tfbbb.export.sampler import Sampler
from tfbbb.prediction.answers import Answers
from tfbbb.types import ArrayLike, Tensor

_OF_REGRESSION = ("mean", "variance", "epistemic", "aleatoric")
_OF_CLASSIFICATION = ("probabilities", "entropy", "mutual_information")
# A stream of noise that no layer uses.
_TARGET_NOISE = 1 << 30

Signature = tuple[Callable[..., dict[str, tf.Tensor]], list[tf.TensorSpec]]

_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")
_LEVELS = tf.TensorSpec([None], tf.float32, name="levels")


class Signatures:
    """Every signature as a function of feature tensors, with its input specs.

    Each is a pure function of its inputs and bounded in memory. All answers about the
    network's outputs come from `answers`.

    Args:
        sampler: Draws the network's outputs, of feature tensors in a list.
        answers: The answers about the predictive distribution.
        features: Specs of the feature tensors, named as in the signatures.
        num_samples: Samples behind `serving_default`.
        seed: Seed of `serving_default`.

    Attributes:
        mean_shape: Shape of the means of one row.
    """

    def __init__(
        self,
        sampler: Sampler,
        answers: Answers,
        features: Sequence[tf.TensorSpec],
        num_samples: int,
        seed: int,
    ):
        self._sampler = sampler
        self._answers = answers
        self._features = list(features)
        self._defaults = (num_samples, seed)
        self._is_classes = answers.task == "classification"
        names = _OF_CLASSIFICATION if self._is_classes else _OF_REGRESSION
        of_members = "between_members" in sampler.summary_specs
        self._names = (*names, "between_members") if of_members else names
        self.mean_shape = list(sampler.summary_specs["mean"].shape[1:])

    def all(self) -> dict[str, Signature]:
        """Returns function and input specs of each signature by its name."""
        asked = [*self._features, _NUM_SAMPLES, _SEED]
        signatures: dict[str, Signature] = {
            "serving_default": (self.serving_default, self._features),
            "predict": (self._predict, asked),
            "sample": (self._sample, asked),
            "log_prob": (self._log_prob, [*asked, self.targets_spec]),
        }
        if self._answers.ordered:
            signatures["quantiles"] = (self._quantiles, [*asked, _LEVELS])
        if self._answers.reach is not None:
            signatures["intervals"] = (self._intervals, [*asked, _LEVELS])
        return signatures

    def serving_default(self, *features: Any) -> dict[str, tf.Tensor]:
        """Returns the summary by its defaults."""
        return self._summary(features, *self._defaults, self._names)

    def _predict(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed = arguments
        names = (*self._names, "mean_standard_error")
        return self._summary(features, num_samples, seed, names)

    def _quantiles(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed, levels = arguments
        found = self._quantiles_at(levels, features, num_samples, seed)
        return {"quantiles": tf.cast(found, tf.float32)}

    def _intervals(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed, levels = arguments
        found = self._summary(features, num_samples, seed, ("mean", "variance"))
        mean, variance = (x[:, tf.newaxis] for x in found.values())
        assert self._answers.reach is not None
        reach = tf.cast(self._answers.reach(levels), tf.float32) * tf.sqrt(variance)
        return {"lower": mean - reach, "upper": mean + reach}

    def _quantiles_at(
        self, levels: ArrayLike, features: Any, num_samples: Any, seed: Tensor
    ) -> tf.Tensor:
        def inverted(outputs: Tensor, first: int | Tensor) -> tf.Tensor:
            return self._answers.ask("quantiles", outputs, levels)

        # Of ordered classes there is one for each place, whatever their number.
        places = [*self.mean_shape[:-1], 1] if self._is_classes else self.mean_shape
        spec = tf.TensorSpec([None, None, *places], tf.float64)
        return self._map(inverted, features, num_samples, seed, spec)

    def _log_prob(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed, targets = arguments
        rows = [tf.shape(tensor)[0] for tensor in (features[0], targets)]
        same = tf.debugging.assert_equal(*rows, "There is one target per row.")
        with tf.control_dependencies([same]):
            targets = tf.identity(targets)

        def of_rows(outputs: Tensor, first: int | Tensor) -> tf.Tensor:
            of_block = targets[first : first + tf.shape(outputs)[0]]
            return self._answers.ask("log_prob", outputs, of_block)

        spec = tf.TensorSpec([None, *self.mean_shape[:-1]], tf.float64)
        found = self._map(of_rows, features, num_samples, seed, spec)
        return {"log_prob": tf.cast(found, tf.float32)}

    def _sample(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed = arguments
        dtype = tf.int32 if self._is_classes else tf.float32
        shape = self.mean_shape[:-1] if self._is_classes else self.mean_shape

        def sample(outputs: Tensor, first: int | Tensor) -> tf.Tensor:
            rows = tf.shape(outputs)[0]
            normals = noise.normal_block(
                noise.fold(_seeds(seed), _TARGET_NOISE),
                first,
                rows,
                [num_samples, *self.mean_shape[:-1], self._answers.noise_size],
            )
            draws = tf.range(tf.cast(num_samples, tf.int64))
            draws = tf.broadcast_to(draws, [rows, num_samples])
            drawn = self._answers.ask("sample", outputs, draws, normals)
            return tf.cast(drawn, dtype)

        spec = tf.TensorSpec([None, None, *shape], dtype)
        drawn = self._map(sample, features, num_samples, seed, spec)
        return {"samples": tf.transpose(drawn, [1, 0, *range(2, 2 + len(shape))])}

    def _summary(
        self, features: Any, num_samples: Any, seed: Tensor, names: Sequence[str]
    ) -> dict[str, tf.Tensor]:
        summary = self._sampler.summary(
            list(features), _at_least_two(num_samples), _seeds(seed)
        )

        def quantiles(levels: ArrayLike) -> tf.Tensor:
            return self._quantiles_at(levels, features, num_samples, seed)

        if self._answers.summary is not None:
            summary = self._answers.summary(summary, quantiles)
        return {name: tf.cast(summary[name], tf.float32) for name in names}

    def _map(
        self, compute: Any, features: Any, num_samples: Any, seed: Tensor, specs: Any
    ) -> Any:
        return self._sampler.map_rows(
            compute,
            list(features),
            _at_least_two(num_samples),
            _seeds(seed),
            specs,
        )

    @property
    def targets_spec(self) -> tf.TensorSpec:
        """The spec of the targets of all rows."""
        if self._is_classes:
            shape, dtype = self.mean_shape[:-1], tf.int32
        else:
            shape, dtype = self.mean_shape, tf.float32
        return tf.TensorSpec([None, *shape], dtype, name="targets")


def _at_least_two(num_samples: Any) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)


def _seeds(seed: Tensor) -> tf.Tensor:
    # As in `tfbbb.predictive`: the same seed gives the same draws, live and exported.
    return tf.stack([0, seed])
