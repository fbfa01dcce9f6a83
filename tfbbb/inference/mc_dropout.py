"""Monte Carlo dropout as a posterior."""

from tfbbb.base.private_apis import sublayers
from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.inference.requirements import dropping_layers
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.dropout import check_dropout


class MCDropout(GradientTraining):
    """The masks of dropout as q(w) (Gal and Ghahramani 2016).

    A weight of q is `w = M diag(z)` with the trained values M and the random masks z of
    the network's dropout layers. Training minimises the loss of `MAP` with dropout on.

    Returns `point` posteriors, which hold M; the masks stay in the dropout layers, so
    **ask for them in each prediction**: `model.predictive(x, include_dropout=True)`.
    Other predictions, and exported models, use M alone. The spread of this q is set by
    the rates and does not shrink with more data.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([
    ...     keras.Input((1,)),
    ...     keras.layers.Dense(32, "relu"),
    ...     keras.layers.Dropout(0.1),
    ...     keras.layers.Dense(1),
    ... ])
    >>> method = tfbbb.inference.MCDropout(epochs=2)
    >>> model = method.fit(network, x, x**2, likelihood="normal", verbose=0)
    >>> bool((model.predictive(x, include_dropout=True).epistemic > 0.0).all())
    True

    Args:
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def _start(self, model: BayesianModel) -> BayesianModel:
        if not dropping_layers(model):
            raise ValueError(
                "MCDropout needs dropout layers, whose masks are its posterior. Put "
                "`keras.layers.Dropout` before layers with weights. "
                f"Received: layers {[layer.name for layer in model.layers]}"
            )
        check_dropout(model, sublayers(model))
        return super()._start(model)
