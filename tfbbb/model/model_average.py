"""Averages of models: mixtures over networks of different architectures.

    p(y | x) = sum_k v_k p(y | x, model k)

The average is one functional Keras model with one output for each model, over common
inputs. One likelihood takes all outputs: they are the outputs of its *members*, as in
an ensemble of one architecture. All models have the same number of members and of
draws, and a draw weighs as much as its model: `member_weights` of the likelihood.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf
from keras import tree
from scipy import optimize

from tfbbb.base.batch_layout import split_leading
from tfbbb.base.types import ArrayLike, Config, Options, Structure, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.predictive_model import PredictiveModel
from tfbbb.prediction.draw_weights import average_over_draws
from tfbbb.prediction.recalibration import Recalibration

# Models with less weight than rounding in double precision are left out.
_LEAST_WEIGHT = 1e-15
# A stacking weight below this share is one that the solver could not tell from 0.
_LEAST_STACKED = 1e-6


def average(
    models: Sequence[BayesianModel],
    weights: str | ArrayLike = "uniform",
    x: ArrayLike = None,
    y: ArrayLike = None,
    *,
    num_samples: int = 200,
    seed: int = 0,
    name: str = "average",
) -> "ModelAverage":
    """Returns a weighted mixture of models, which may have different architectures.

    `p(y | x) = sum_k v_k p(y | x, model k)`, with the weights v by one of

    - `"uniform"`: the same for every model;
    - `"evidence"`: `v_k = exp(log_evidence_k) / sum_j exp(log_evidence_j)`, Bayesian
      model averaging with equal prior probabilities. Each model needs a
      `log_evidence`, as methods of `tfbbb.inference` give it;
    - `"stacking"`: the weights of the mixture with the greatest log score of the
      held-out rows `x`, `y` (Yao et al. 2018);
    - numbers, which are divided by their sum.

    Evidence asks which model made the data, and puts nearly all weight on one model as
    rows grow in number; stacking asks which mixture predicts best.

    Example:

    >>> import keras, tfbbb
    >>> def network(units):
    ...     inputs = keras.Input((2,))
    ...     hidden = tfbbb.layers.DenseVariational(units, activation="tanh")(inputs)
    ...     outputs = tfbbb.layers.DenseVariational(1)(hidden)
    ...     return tfbbb.BayesianModel(inputs, outputs)
    >>> both = tfbbb.average([network(4), network(8)], weights=[1.0, 3.0])
    >>> both.mixture_weights
    array([0.25, 0.75])
    >>> both.predictive([[1.0, 2.0]]).mean.shape
    (1, 1)

    Args:
        models: Trained models with inputs of the same names and shapes, and the same
            kind of likelihood with the same shift and scale of the targets. They are
            copied. The average has no `familiarity` until it is given one.
        weights: `"uniform"`, `"evidence"`, `"stacking"`, or numbers, one per model.
        x: Inputs of held-out rows, for `"stacking"` only.
        y: Their targets in raw units.
        num_samples: Draws behind the densities of the held-out rows.
        seed: Seed of these draws.
        name: Name of the average.

    Returns:
        A `ModelAverage`, without models of weight 0.

    Raises:
        ValueError: There is no model, the models do not fit each other, one is
            recalibrated, one has no `log_evidence` for `"evidence"`, `x` and `y` are
            missing or of no use, or a weight is negative or not finite.
    """
    models = list(models)
    for model in models:
        if not isinstance(model, BayesianModel):
            raise ValueError(
                "Every model must be a `tfbbb.BayesianModel`. "
                f"Received: a model of type {type(model).__name__}"
            )
        if model.recalibration is not None:
            raise ValueError(
                "A recalibrated model is no mixture of likelihoods any more: set "
                "`model.recalibration = None`, and recalibrate the average. "
                f"Received: recalibration={model.recalibration!r} of {model.name!r}"
            )
    if not models:
        raise ValueError("An average needs at least one model. Received: models=[]")
    stacks = isinstance(weights, str) and weights == "stacking"
    if stacks != (x is not None) or stacks != (y is not None):
        raise ValueError(
            'Held-out rows `x` and `y` belong to `weights="stacking"`, which needs '
            f"both. Received: weights={weights!r}, x of type {type(x).__name__}, "
            f"y of type {type(y).__name__}"
        )
    if stacks:
        logs = [
            model.predictive(x, num_samples=num_samples, seed=seed).log_prob(y)
            for model in models
        ]
        shares = stacking_weights(
            np.stack([log.reshape(len(log), -1).sum(axis=1) for log in logs], axis=1)
        )
    elif isinstance(weights, str):
        shares = _named_weights(weights, models)
    else:
        shares = _given_weights(weights, len(models))
    kept = [
        (model, share)
        for model, share in zip(models, shares, strict=True)
        if share > _LEAST_WEIGHT
    ]
    number = math.lcm(*(len(model.members) for model, _ in kept))
    copies = [
        model.members.mixture([i % len(model.members) for i in range(number)])
        for model, _ in kept
    ]
    _give_names(copies)
    return ModelAverage(copies, [share for _, share in kept], name=name)


def stacking_weights(log_densities: ArrayLike) -> np.ndarray:
    """Returns the weights [models] that maximise the log score of their mixture.

    `max_w (1/n) sum_i log sum_k w_k p_k(y_i)` with `w_k >= 0` and `sum_k w_k = 1`,
    where log p_k(y_i), [n, models], are of rows that no model was trained on (Yao,
    Vehtari, Simpson and Gelman 2018, equation 4). The problem is convex; models that
    the mixture does not need have exactly 0.
    """
    logs = np.asarray(log_densities, np.float64)
    if logs.ndim != 2 or not logs.size:
        raise ValueError(
            "`log_densities` must be an array of shape [n, models] with n > 0. "
            f"Received: an array of shape {logs.shape}"
        )
    greatest = logs.max(axis=1, keepdims=True)
    if not np.isfinite(greatest).all():
        row = int(np.argmin(np.isfinite(greatest[:, 0])))
        raise ValueError(
            "Each row must have a finite log density under at least one model. "
            f"Received: {logs[row].tolist()} in row {row}"
        )
    # A factor of all densities of a row does not change the optimum.
    densities = np.exp(logs - greatest)
    models = densities.shape[1]
    if models == 1:
        return np.ones(1)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixture = np.maximum(densities @ weights, 1e-300)
        gradient = -(densities / mixture[:, np.newaxis]).mean(axis=0)
        return float(-np.log(mixture).mean()), gradient

    found = optimize.minimize(
        loss,
        np.full(models, 1.0 / models),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * models,
        constraints={
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1.0,
            "jac": lambda weights: np.ones(models),
        },
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    weights = np.where(found.x < _LEAST_STACKED, 0.0, found.x)
    weights /= weights.sum()
    # Steps that never lower the score (Dempster, Laird and Rubin 1977) finish what the
    # solver leaves. Concavity bounds what is still to gain by max_k mean(p_k / p) - 1.
    for _ in range(10_000):
        ratios = -loss(weights)[1]
        if ratios.max() - 1.0 < 1e-10:
            break
        weights *= ratios
    return np.asarray(weights / weights.sum())


@keras.saving.register_keras_serializable(package="tfbbb")
class ModelAverage(PredictiveModel):
    """A weighted mixture of models: make one with `tfbbb.average`.

    It predicts, is recalibrated, saved (`.keras`), exported and served as a
    `BayesianModel` is. `between_members` of its predictions is the variance between
    its models, which is epistemic.

    Args:
        models: Models with equal numbers of members and different names.
        mixture_weights: Their weights, [models], positive.
        name: Name of the average.
        recalibration: A recalibration of its predictions, or None.

    Raises:
        ValueError: The models have inputs, outputs, likelihoods or targets in standard
            units that do not fit each other.
    """

    def __init__(
        self,
        models: Sequence[BayesianModel],
        mixture_weights: Sequence[float],
        name: str | None = None,
        *,
        recalibration: Recalibration | None = None,
    ):
        _check_same("inputs", [_input_form(model) for model in models])
        _check_same("number of members", [len(model.members) for model in models])
        _check_same("outputs", [tuple(m.outputs[0].shape[1:]) for m in models])
        inputs = tree.map_structure(
            lambda x: keras.Input(batch_shape=x.shape, dtype=x.dtype, name=x.name),
            models[0].input,
        )
        outputs = [model(inputs) for model in models]
        super().__init__(inputs, outputs[0] if len(models) == 1 else outputs, name=name)
        self._models = list(models)
        shares = np.asarray(mixture_weights, np.float64)
        self.mixture_weights: np.ndarray = shares / shares.sum()
        self.likelihood = _common_likelihood(self._models, self.mixture_weights)
        self.recalibration = recalibration

    @property
    def models(self) -> tuple[BayesianModel, ...]:
        """The models of the mixture, in order."""
        return tuple(self._models)

    @property
    def num_rows(self) -> float | None:
        """Number of the training rows, if it is the same for all models."""
        numbers = {model.num_rows for model in self._models}
        return numbers.pop() if len(numbers) == 1 else None

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ValueError: the models are trained, then averaged."""
        raise ValueError(
            "An average of models is not trained. Train the models one by one, and "
            f"average them again. Received: model={self.name!r}"
        )

    def predict_step(self, data: Structure) -> Tensor:
        """Returns the mixture's mean for one draw of each model, in raw units."""
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        by_model = tf.concat(tree.flatten(self(x, training=False)), axis=0)
        # [members * rows, ...], model by model and member by member.
        outputs = split_leading(by_model, self.likelihood.members)
        ones = [1] * (len(outputs.shape) - 2)
        member = tf.reshape(tf.range(self.likelihood.members), [-1, *ones])
        means = self.likelihood.mean(self.likelihood.of_members(outputs, member))
        return average_over_draws(self.likelihood, means, axis=0)

    def get_config(self) -> Config:
        return {
            "models": [keras.saving.serialize_keras_object(m) for m in self._models],
            "mixture_weights": self.mixture_weights.tolist(),
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Options | None = None
    ) -> Self:
        """Makes the average that `config` describes, with models of new weights."""
        models = [
            keras.saving.deserialize_keras_object(model, custom_objects)
            for model in config["models"]
        ]
        return cls(**{**config, "models": models})


def _named_weights(name: str, models: list[BayesianModel]) -> np.ndarray:
    if name == "uniform":
        return np.full(len(models), 1.0 / len(models))
    if name != "evidence":
        raise ValueError(
            '`weights` must be "uniform", "evidence", "stacking" or numbers, one per '
            f"model. Received: weights={name!r}"
        )
    logs = []
    for model in models:
        if model.log_evidence is None:
            raise ValueError(
                'With `weights="evidence"` every model needs a `log_evidence`: find '
                "its posterior by a method of `tfbbb.inference` that gives one, such "
                'as Laplace, or use `weights="stacking"`. '
                f"Received: log_evidence=None of {model.name!r}"
            )
        logs.append(model.log_evidence)
    shares = np.exp(np.asarray(logs) - max(logs))
    return np.asarray(shares / shares.sum())


def _given_weights(given: ArrayLike, number: int) -> np.ndarray:
    shares = np.asarray(given, np.float64)
    valid = shares.shape == (number,) and np.isfinite(shares).all()
    if not valid or (shares < 0.0).any() or not shares.sum() > 0.0:
        raise ValueError(
            f"`weights` must be {number} finite numbers, one per model, none of them "
            f"negative and not all 0. Received: weights={given!r}"
        )
    return np.asarray(shares / shares.sum())


def _give_names(models: list[BayesianModel]) -> None:
    """Gives copies of models names that differ, as Keras needs them in one model."""
    taken = {x.name for model in models for x in model.inputs}
    for model in models:
        name, number = model.name, 0
        while model.name in taken:
            number += 1
            model.name = f"{name}_{number}"
        taken.add(model.name)


def _input_form(model: BayesianModel) -> Structure:
    return tree.map_structure(lambda x: f"{x.dtype} {list(x.shape[1:])}", model.input)


def _check_same(what: str, found: Sequence[object]) -> None:
    for other in found:
        if other != found[0]:
            raise ValueError(
                f"The models of an average must have the same {what}. "
                f"Received: {found[0]} and {other}"
            )


def _common_likelihood(models: list[BayesianModel], weights: np.ndarray) -> Likelihood:
    """Returns the likelihood of all outputs, with the parameters of each model."""
    given = [model.likelihood for model in models]
    configs = [
        {"class": type(x).__name__, **x.get_config(), "name": None} for x in given
    ]
    _check_same("likelihood", configs)
    common: Likelihood = likelihoods.get(
        type(given[0]).from_config(
            {**given[0].get_config(), "name": "likelihood_of_average"}
        )
    )
    members = len(models[0].members)
    common.members = members * len(models)
    common.build(models[0].outputs[0].shape)
    if len(set(weights.tolist())) > 1:
        common.member_weights = tuple(np.repeat(weights / members, members).tolist())
    learned = {id(variable) for variable in common.learned_variables}
    wider = {"target_low": np.min, "target_high": np.max}
    for variable, *sources in zip(
        common.variables, *(x.variables for x in given), strict=True
    ):
        values = [source.numpy() for source in sources]
        if id(variable) in learned:
            variable.assign(np.reshape(values, variable.shape))
            continue
        if variable.name in wider:
            # Each model bounds its parameters by its targets; later ones may differ.
            variable.assign(wider[variable.name](values, axis=0))
            continue
        for value in values:
            if not np.allclose(value, values[0], rtol=1e-5, atol=0.0):
                raise ValueError(
                    "The models of an average must have the same shift and scale of "
                    "the targets: train them on the same rows, or call "
                    "`model.likelihood.adapt(y)` with the same targets before `fit`. "
                    f"Received: {variable.name} of {values[0]} and {value}"
                )
        variable.assign(values[0])
    return common
