"""The signatures of an exported posterior predictive."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfbbb import noise
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.quantiles import quantiles
from tfbbb.prediction.sampler import Sampler

_OF_REGRESSION = ("mean", "variance", "epistemic", "aleatoric")
_OF_CLASSIFICATION = ("probabilities", "entropy", "mutual_information")
# Away from the places that the layers' noise is drawn at.
_TARGET_NOISE = 1 << 30

Signature = tuple[Callable[..., dict[str, tf.Tensor]], list[tf.TensorSpec]]

_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")
_LEVELS = tf.TensorSpec([None], tf.float32, name="levels")


class Signatures:
    """Every signature as a function of feature tensors, with its input specs.

    Args:
        sampler: Draws the network's outputs.
        likelihood: p(y | outputs).
        features: Specs of the feature tensors, named as in the signatures.
        pack: Arranges feature tensors, in order, as the model's inputs.
        num_samples: Samples behind `serving_default`.
        seed: Seed of `serving_default`.
    """

    def __init__(
        self,
        sampler: Sampler,
        likelihood: Likelihood,
        features: Sequence[tf.TensorSpec],
        pack: Callable[[Sequence[Any]], Any],
        num_samples: int,
        seed: int,
    ):
        self._sampler = sampler
        self._likelihood = likelihood
        self._features = list(features)
        self._pack = pack
        self._defaults = (num_samples, seed)
        self._names = (
            _OF_CLASSIFICATION
            if likelihood.task == "classification"
            else _OF_REGRESSION
        )

    def all(self) -> dict[str, Signature]:
        """Returns function and input specs of each signature by its name."""
        asked = [*self._features, _NUM_SAMPLES, _SEED]
        signatures: dict[str, Signature] = {
            "serving_default": (self._serving_default, self._features),
            "predict": (self._predict, asked),
            "sample": (self._sample, asked),
        }
        if self._likelihood.task == "regression":
            signatures["quantiles"] = (self._quantiles, [*asked, _LEVELS])
        return signatures

    def _serving_default(self, *features: Any) -> dict[str, tf.Tensor]:
        return self._summary(features, *self._defaults, self._names)

    def _predict(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed = arguments
        names = (*self._names, "mean_standard_error")
        return self._summary(features, num_samples, seed, names)

    def _quantiles(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed, levels = arguments

        def inverted(outputs: Any, first: Any) -> tf.Tensor:
            return quantiles(self._likelihood, levels, outputs)

        spec = tf.TensorSpec([None, None, *self._target_shape], tf.float64)
        found = self._map(inverted, features, num_samples, seed, spec)
        return {"quantiles": tf.cast(found, tf.float32)}

    def _sample(self, *arguments: Any) -> dict[str, tf.Tensor]:
        *features, num_samples, seed = arguments
        classes = self._likelihood.task == "classification"

        def sample(outputs: Any, first: Any) -> tf.Tensor:
            shape = [*self._target_shape[:-1], self._likelihood.noise_size]
            normals = noise.normal_block(
                noise.fold(_seeds(seed), _TARGET_NOISE),
                first,
                tf.shape(outputs)[0],
                [num_samples, *shape],
            )
            drawn = self._likelihood.sample(outputs[:, :num_samples], normals)
            return tf.cast(drawn, dtype)

        shape, dtype = ([], tf.int32) if classes else (self._target_shape, tf.float32)
        spec = tf.TensorSpec([None, None, *shape], dtype)
        drawn = self._map(sample, features, num_samples, seed, spec)
        return {"samples": tf.transpose(drawn, [1, 0, *range(2, 2 + len(shape))])}

    def _summary(
        self, features: Any, num_samples: Any, seed: Any, names: Sequence[str]
    ) -> dict[str, tf.Tensor]:
        summary = self._sampler.summary(
            self._pack(features), _at_least_two(num_samples), _seeds(seed)
        )
        return {name: tf.cast(summary[name], tf.float32) for name in names}

    def _map(
        self, compute: Any, features: Any, num_samples: Any, seed: Any, specs: Any
    ) -> Any:
        return self._sampler.map_rows(
            compute,
            self._pack(features),
            _at_least_two(num_samples),
            _seeds(seed),
            specs,
        )

    @property
    def _target_shape(self) -> list[int]:
        return list(self._sampler.summary_specs["mean"].shape[1:])


def _at_least_two(num_samples: Any) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)


def _seeds(seed: Any) -> tf.Tensor:
    # As in `tfbbb.predictive`: the same seed gives the same draws, live and exported.
    return tf.stack([0, seed])
