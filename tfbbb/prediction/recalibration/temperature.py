"""Temperature scaling of classes."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import positive_number
from tfbbb.base.row_weights import effective_rows
from tfbbb.base.types import Config
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.recalibration.best_factor import best_factor, draw_rows
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive


@keras.saving.register_keras_serializable(package="tfbbb.recalibration")
class Temperature(Recalibration):
    """Divides the logits under every draw by one number (Guo et al. 2017).

        p(y = c | x, data) = E_w[softmax(f(x, w) / T)_c]

    T > 1 makes predictions less confident, T < 1 more confident; the most probable
    class under each draw does not change. The probabilities of the mixture, its
    entropy, mutual information, log probabilities and drawn labels change accordingly.
    For ordered classes both cutpoints and location are divided by T.

    T minimises the negative log likelihood of the mixture on the n held-out rows. If
    it falls for ever, as when all of them are predicted right, T minimises it plus
    `(log T)^2 / (2 n)`, the prior log T ~ N(0, 1).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> x = np.random.normal(size=(50, 2))
    >>> before = model.predictive(x).entropy
    >>> model.recalibration = tfbbb.recalibration.Temperature(2.0)
    >>> bool((model.predictive(x).entropy > before).all())
    True

    Args:
        temperature: T, positive.

    Raises:
        ValueError: `temperature` is not positive and finite.
    """

    least_rows = 20
    acts_on_outputs = True

    def __init__(self, temperature: float = 1.0):
        self.temperature = float(positive_number("temperature", temperature))

    def get_config(self) -> Config:
        return {"temperature": self.temperature}

    def check(self, likelihood: Likelihood) -> None:
        if not isinstance(likelihood, Classification):
            raise ValueError(
                "A temperature divides logits, which only classes have: use "
                "`'variance_scaling'`, `'isotonic_pit'` or `'conformal_intervals'` "
                f"for numbers. Received: likelihood={type(likelihood).__name__}"
            )

    def fitted(
        self,
        likelihood: Likelihood,
        prediction: Predictive,
        targets: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> "Temperature":
        drawn = draw_rows(prediction, targets, weights)
        loss, rough = (_loss(likelihood, *rows) for rows in drawn)
        # The temperature of similar rows, if this recalibration is fitted to some.
        known = None if self.temperature == 1.0 else self.temperature
        num_rows = effective_rows(drawn[0][-1])
        return Temperature(best_factor("temperature", loss, known, num_rows, rough))

    def outputs(self, likelihood: Likelihood, outputs: tf.Tensor) -> tf.Tensor:
        assert isinstance(likelihood, Classification)
        return likelihood.tempered(outputs, self.temperature)


def _loss(
    likelihood: Likelihood,
    prediction: Predictive,
    targets: np.ndarray,
    weights: np.ndarray,
) -> Callable[[float], float]:
    """Returns from a temperature to the weighted mean of minus log p(y)."""

    def loss(temperature: float) -> float:
        tempered = Temperature(temperature)

        def log_prob(outputs: tf.Tensor, targets: np.ndarray) -> tf.Tensor:
            outputs = tempered.outputs(likelihood, outputs)
            return Mixture(likelihood, outputs).log_prob(targets)

        found = prediction.of_outputs(log_prob, targets)
        return -float(
            np.average(found.reshape(len(found), -1).mean(1), weights=weights)
        )

    return loss
