"""Averages of models: mixtures over networks of different architectures.

    p(y | x) = sum_k v_k p(y | x, model k)

The average is one functional Keras model with one output for each model, over common
inputs. One likelihood takes all outputs: they are the outputs of its *members*, as in
an ensemble of one architecture, so draws, summaries, answers and exported functions are
the ones that members have. The likelihood has the parameters that each model learned
and, in `member_weights`, the weights v_k.

Every model gets the same number of draws, and a draw weighs as much as its model. The
mixture is therefore exact for any weights, and only `sample` and `joint_sample`, which
return draws, choose models at random. All models have the same number of members: a
posterior of a smaller ensemble, or of a single model, is taken several times.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.batch_layout import split_leading
from tfbbb.base.types import ArrayLike, Config, Options, Structure, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.predictive_model import PredictiveModel
from tfbbb.model.stacking import stacking_weights
from tfbbb.prediction.draw_weights import average_over_draws
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.recalibration import Recalibration

# Models with less weight than rounding in double precision are left out.
_LEAST_WEIGHT = 1e-15


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
      held-out rows `x`, `y` (Yao et al. 2018): see `tfbbb.stacking.stacking_weights`;
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
            copied. The average keeps a `familiarity` of inputs, and an `extrapolation`,
            that all of them have; it warns where theirs differ, and has none.
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
    mixture = ModelAverage(copies, [share for _, share in kept], name=name)
    _compare_rows_as_all(mixture)
    return mixture


@keras.saving.register_keras_serializable(package="tfbbb")
class ModelAverage(PredictiveModel):
    """A weighted mixture of models: make one with `tfbbb.average`.

    It predicts, is recalibrated, saved (`.keras`), exported and served as a
    `BayesianModel` is. The variance between its models is epistemic and is
    `between_members` of its predictions.

    Args:
        models: Models with equal numbers of members and different names.
        mixture_weights: Their weights, [models], positive.
        name: Name of the average.
        recalibration: A recalibration of its predictions, or None.

    Attributes:
        models: The models of the mixture, in order.
        mixture_weights: Their weights, which sum to 1, [models].
        likelihood: The likelihood of all models, with the members of each.

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


def _compare_rows_as_all(mixture: ModelAverage) -> None:
    """Gives an average the familiarity and extrapolation of all models, or warns."""
    models = mixture.models
    rows, widening = models[0].familiarity, models[0].extrapolation
    if rows and _all_equal([model.familiarity for model in models]):
        mixture.familiarity = rows
        if _all_equal([model.extrapolation for model in models]):
            mixture.extrapolation = widening
    for name in ("familiarity", "extrapolation"):
        found = [(model.name, getattr(model, name)) for model in models]
        if getattr(mixture, name) is None and any(value for _, value in found):
            warnings.warn(
                f"The average has no {name}: it keeps one that all models have. "
                f" Set `{name}` of the average. Received: "
                + ", ".join(f"{value!r} of {model!r}" for model, value in found),
                stacklevel=3,
            )


def _all_equal(found: Sequence[Familiarity | Extrapolation | None]) -> bool:
    configs = [None if one is None else one.get_config() for one in found]
    return all(config == configs[0] for config in configs)


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
