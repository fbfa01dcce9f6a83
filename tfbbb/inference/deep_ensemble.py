"""Deep ensembles."""

from tfbbb.base.numbers import positive_integer
from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior


class DeepEnsemble(GradientTraining):
    """K networks from independent starts (Lakshminarayanan et al. 2017).

    Returns `point` posteriors with `members=K`, each at a mode of its own: of the
    posterior, or with `prior=False` of the likelihood. All train at once, as one
    network, on the same batches, and each learns its own noise. The spread between
    members is epistemic; it is that of the modes, not of the posterior around them.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([
    ...     keras.Input((1,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)
    ... ])
    >>> method = tfbbb.inference.DeepEnsemble(members=3, epochs=2)
    >>> model = method.fit(network, x, x**2, likelihood="normal", verbose=0)
    >>> len(model.members)
    3

    Args:
        members: Number K of networks.
        prior: Whether the priors of the model count (maximum a posteriori).
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def __init__(
        self,
        members: int = 5,
        prior: bool = True,
        epochs: int = 200,
        batch_size: int = 32,
        learning_rate: float = 0.01,
    ):
        super().__init__(epochs, batch_size, learning_rate)
        self.members = positive_integer("members", members)
        self.prior = bool(prior)

    def _start(self, model: BayesianModel) -> BayesianModel:
        without = {} if self.prior else {"prior": None, "bias_prior": None}
        return with_posterior(
            model, "point", members=self.members, same_start=False, **without
        )
