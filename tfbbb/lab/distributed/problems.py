"""What partitioned inference does with a model: linear in closed form, or a network."""

from typing import Protocol

import keras
import numpy as np
from keras import tree

from tfbbb.base.private_apis import producer
from tfbbb.base.types import Options, Structure
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.priors import Normal as NormalPrior
from tfbbb.inference.batches import Batches
from tfbbb.lab.distributed.linear_rows import LinearRows
from tfbbb.lab.distributed.network_rows import (
    LocalTraining,
    NetworkRows,
    NetworkWeights,
)
from tfbbb.lab.distributed.partition import LocalRows
from tfbbb.lab.inference.linear_model import LinearModel
from tfbbb.lab.inference.natural_normal import NaturalNormal
from tfbbb.layers import DenseVariational
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.inference_result import InferenceResult


class Problem(Protocol):
    """A model, as the server and the workers see it. It can be sent to other machines.

    Attributes:
        prior: p(w).
        start: q at the start.
    """

    prior: NaturalNormal
    start: NaturalNormal

    def local_rows(self, x: Structure, y: np.ndarray, partition: int) -> LocalRows:
        """Returns the rows of a partition; called where they live."""

    def model_with(self, q: NaturalNormal, inference: InferenceResult) -> BayesianModel:
        """Returns a new model with the posterior q."""


def is_linear(model: BayesianModel) -> bool:
    """Whether this is Bayesian linear regression with noise of a given scale.

    Its outputs are those of one dense layer of one unit without activation, whose
    weights have normal priors around 0 and are all that is trainable.
    """
    likelihood, layers = model.likelihood, model.variational_layers
    if len(layers) != 1 or not isinstance(layers[0], DenseVariational):
        return False
    (layer,) = layers
    own: set[int] = set()
    for weight in layer.variational_weights:
        own |= {id(variable) for variable in weight.variables.values()}
        own |= {id(variable) for variable in weight.prior_variables.values()}
    return (
        layer.units == 1
        and layer.activation is keras.activations.linear
        and producer(model.outputs[0]) is layer
        and all(isinstance(w.prior, NormalPrior) for w in layer.variational_weights)
        and all(id(variable) in own for variable in model.trainable_variables)
        and isinstance(likelihood, Normal)
        and likelihood.scale is not None
        and likelihood.resolution is None
        and len(model.members) == 1
    )


class LinearProblem:
    """Linear regression with noise of a given scale: updates in closed form.

    Args:
        model: The model, whose likelihood knows shift and scale of the targets.
        covariance: `"full"` or `"factorised"`.
    """

    def __init__(self, model: BayesianModel, covariance: str):
        if covariance == "full" and not is_linear(model):
            raise ValueError(
                "covariance='full' is for linear regression with noise of a given "
                "scale: one dense layer of one unit without activation, whose weights "
                "have the prior 'normal' and are all that is trainable, and the "
                "likelihood `Normal(scale=...)`. Use covariance='factorised'. "
                f"Received: likelihood={model.likelihood!r} and "
                f"{len(model.variational_layers)} layers with a posterior"
            )
        self._model = model
        self._covariance = covariance
        # Of these rows only the shape matters.
        x = tree.map_structure(_two_rows, model.input)
        self._problem = self._linear_model(x, np.array([-1.0, 1.0]))
        self.prior = self.start = self._prior(self._problem)

    def __getstate__(self) -> Options:
        return {name: v for name, v in vars(self).items() if name != "_problem"}

    def local_rows(self, x: Structure, y: np.ndarray, partition: int) -> LocalRows:
        problem = self._linear_model(x, y)
        return LinearRows(problem.design, problem.targets, problem.noise, self.prior)

    def model_with(self, q: NaturalNormal, inference: InferenceResult) -> BayesianModel:
        return self._problem.model_with(*q.moments(), inference)

    def _linear_model(self, x: Structure, y: np.ndarray) -> LinearModel:
        rows = Batches(x, y, batch_size=4096)
        return LinearModel(
            self._model, rows, "PartitionedVI", self._covariance, (Normal,)
        )

    def _prior(self, problem: LinearModel) -> NaturalNormal:
        variances = problem.prior_variances
        covariance = variances if problem.factorised else np.diag(variances)
        return NaturalNormal.from_moments(np.zeros_like(variances), covariance)


def _two_rows(tensor: keras.KerasTensor) -> np.ndarray:
    """Returns two rows of an input."""
    shape = (2, *tensor.shape[1:])
    if tensor.dtype == "string":
        return np.full(shape, "", object)
    return np.zeros(shape, tensor.dtype)


class NetworkProblem:
    """A network: updates by gradients.

    Args:
        model: The model, whose likelihood knows shift and scale of the targets.
        epochs: Passes over the rows of a partition in an update.
        batch_size: Rows of a step.
        learning_rate: The learning rate at the start of an update.
        seed: Seed of the order of the rows.
    """

    def __init__(
        self,
        model: BayesianModel,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
    ):
        self._model = model
        self._options = epochs, batch_size, learning_rate
        self._seed = seed
        self._prepare()

    def _prepare(self) -> None:
        self._weights = NetworkWeights(self._model)
        self.prior, self.start = self._weights.prior, self._weights.start
        self._training: LocalTraining | None = None

    def __getstate__(self) -> Options:
        return {name: vars(self)[name] for name in ("_model", "_options", "_seed")}

    def __setstate__(self, state: Options) -> None:
        vars(self).update(state)
        self._prepare()

    def local_rows(self, x: Structure, y: np.ndarray, partition: int) -> LocalRows:
        self._model.likelihood.check_targets(y)
        # Partitions of one process compute in turn, and share one network.
        if self._training is None:
            self._training = LocalTraining(self._weights, *self._options)
        return NetworkRows(x, y, self._training, self._seed + partition)

    def model_with(self, q: NaturalNormal, inference: InferenceResult) -> BayesianModel:
        model = self._weights.model_with(q)
        model.inference = inference
        return model
