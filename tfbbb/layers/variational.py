"""The base class of variational layers: weights, objective, noise, configuration."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias, TypedDict

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfbbb.base import noise
from tfbbb.base.batch_layout import BatchLayout
from tfbbb.base.call_context import call_with, current_call
from tfbbb.base.documented_arguments import (
    document_arguments,
    document_inherited_arguments,
    documented_arguments,
)
from tfbbb.base.numbers import is_finite_number, positive_integer
from tfbbb.base.private_apis import (
    around_control_flow,
    current_graph,
    exports_call,
    is_rematerialized,
    outermost_call,
    outermost_layer,
    remove_loss,
    unlocked,
    untrack_variables,
)
from tfbbb.base.strategy import constructor_signature
from tfbbb.base.types import (
    Config,
    Constraint,
    Distribution,
    DType,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.bayes import estimators, posteriors, priors
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.bayes.estimators import ClosedForm, Estimator
from tfbbb.bayes.posteriors import MeanFieldNormal, Posterior
from tfbbb.bayes.priors import Normal, Prior
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers.row_axes import row_axes
from tfbbb.layers.sharing import calls_per_pass, number_of

PosteriorLike: TypeAlias = "str | Config | Callable[..., Distribution] | Posterior"
PriorLike: TypeAlias = "str | Config | Distribution | Prior | None"
EstimatorLike: TypeAlias = "str | Config | Estimator"
# What a layer has by default, for kernels and biases: chosen by the study of
# `benchmarks/README.md`, "Default layers". A saved layer states its own, so a
# change here changes only new layers.
DEFAULT_POSTERIOR = MeanFieldNormal(initial_scale=0.02)
DEFAULT_PRIOR = Normal(scale=0.5)
DEFAULT_BIAS_PRIOR = Normal(scale=1.0)
# Arguments of Keras' layers that have no meaning where a weight is not a number: what
# quantizes it, adds to it or is its value, and the kernels of cuDNN, the same for all
# rows.
_WITHOUT_MEANING = {
    "gptq_unpacked_column_size",
    "lora_alpha",
    "lora_rank",
    "quantization_config",
    "use_cudnn",
    "weights",
}


class VariationalOptions(TypedDict, total=False):
    """The options that all variational layers share: see `VariationalLayer`."""

    posterior: PosteriorLike
    prior: PriorLike
    bias_posterior: PosteriorLike
    bias_prior: PriorLike
    estimator: EstimatorLike
    kl_weight: float | None
    members: int
    seed: int | None
    name: str | None
    dtype: DType | keras.DTypePolicy
    trainable: bool


class VariationalLayer(keras.Layer):
    """Base of the layers whose weights `w` have a posterior q(w) and a prior p(w).

    Every ordinary call draws weights or outputs, training or not, and adds

        kl_weight * KL(q(w) || p(w))

    to the losses, once per step, however often the layer is called in the step. A
    subclass that also derives from a layer of Keras has its arguments and its config;
    the weights of that layer that `posterior_weights` names get a posterior. Others
    create theirs in `build` with `add_variational_weight`. Each call uses `begin_call`,
    an estimator and `count_kl`. Layers that are linear in one kernel inherit all of
    this from `LinearVariationalLayer`. Initializers, regularizers and constraints of
    the layer of Keras are those of posterior means.

    With `members=K` the layer holds K independent posteriors: every variational
    variable has a leading axis [K, ...], and a batch is [K * rows, ...], one member
    after the other. The divergence is the mean over the members.

    Args:
        posterior: q of the kernels, by name or as a `tfbbb.posteriors.Posterior`; by
            default `MeanFieldNormal(initial_scale=0.02)`.
        prior: p of the kernels, by name or as a `tfbbb.priors.Prior`; by default
            `Normal(scale=0.5)`.
        bias_posterior: q of the bias; by default that of `posterior`.
        bias_prior: p of the bias; by default a standard normal.
        estimator: How noise reaches the output: a name such as `"auto"`, `"local"`,
            `"weight"`, `"flipout"`, or a `tfbbb.estimators.Estimator`.
        kl_weight: Weight of the KL divergence in the loss, `1/N` for `N` training
            rows; a non-negative finite number. With `None`, `BayesianModel.fit` sets
            it, and training with it unset is an error.
        members: Number K of posteriors that the layer holds, a positive integer.
        seed: Integer that fixes the noise of training.
        name: Name of the layer.
        dtype: Dtype policy of the layer. Posterior and divergence stay in float32.
        trainable: Whether the layer's variables are trained.
        **options: Further options of the layer of Keras.
    """

    # The weights of the layer of Keras that have a posterior, and their names here.
    posterior_weights: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        describe_constructor(cls)

    def __init__(
        self,
        *arguments: Any,
        posterior: PosteriorLike = DEFAULT_POSTERIOR,
        prior: PriorLike = DEFAULT_PRIOR,
        bias_posterior: PosteriorLike = DEFAULT_POSTERIOR,
        bias_prior: PriorLike = DEFAULT_BIAS_PRIOR,
        estimator: EstimatorLike = "auto",
        kl_weight: float | None = None,
        members: int = 1,
        seed: int | None = None,
        **options: Any,
    ):
        refuse_without_meaning(type(self), options)
        super().__init__(*arguments, **options)
        self.posterior = posteriors.get(posterior)
        self.prior = priors.get(prior)
        self.bias_posterior = posteriors.get(bias_posterior)
        self.bias_prior = priors.get(bias_prior)
        self.estimator = estimators.get(estimator)
        self.members = positive_integer("members", members)
        self.seed = seed
        self._given_kl_weight = _checked_kl_weight(kl_weight)
        self._check_strategies()
        self.check_penalties(self.members)
        # TensorFlow compiles the kernel that makes a variable for each new name.
        self._seed_generator = keras.random.SeedGenerator(seed, name="seed_generator")
        # TensorFlow saves variables that are attributes: checkpoints, SavedModels.
        self._seed_state = self._seed_generator.state.value
        self._steps: dict[int, _Step] = {}
        self._variational_weights: list[VariationalWeight] = []
        # Factor of each member's divergence, [members], while members train on
        # different rows or at different temperatures; `BayesianModel` sets it.
        self.kl_factors: np.ndarray | None = None
        # On a CPU, XLA draws random numbers about ten times slower than TensorFlow's
        # kernels. Keras then never chooses XLA, and warns if the user requests it.
        self.supports_jit = False

    def _check_strategies(self) -> None:
        """Raises ValueError if posteriors, priors and estimator do not fit together."""
        self.posterior.check_prior(self.prior)
        families = [self.posterior]
        if getattr(self, "use_bias", False):
            self.bias_posterior.check_prior(self.bias_prior)
            families.append(self.bias_posterior)
        estimators.check(self.estimator, self, families)
        self.estimator = self.estimator.resolve(families)

    def can_use(self, estimator: estimators.Estimator) -> bool:
        """Whether this kind of layer can be trained by the estimator."""
        return not isinstance(estimator, ClosedForm)

    def add_weight(self, *arguments: Any, **options: Any) -> Any:
        """Creates a variable for Keras' layer, or a weight where it has a posterior."""
        given: Any = options.get("name")
        if given not in self.posterior_weights:
            return super().add_weight(*arguments, **options)
        shape = tuple(options["shape"])
        if not all(isinstance(size, int) and size > 0 for size in shape):
            raise ValueError(
                f"Every axis of the {given} of '{self.name}' must have a known and "
                "positive size: give it in the arguments or by the inputs' shape. "
                f"Received: a {given} of shape {shape}"
            )
        name = self.posterior_weights[given]
        is_bias = name == "bias"
        return self.add_variational_weight(
            name,
            shape,
            fan_in=1 if is_bias else self.fan_in(shape),
            initializer=options["initializer"],
            is_bias=is_bias,
            regularizer=options["regularizer"],
            constraint=options["constraint"],
        )

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        """Returns the number of inputs that an output sums over by such a kernel."""
        return math.prod(kernel_shape[:-1])

    def add_variational_weight(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        fan_in: int,
        initializer: Initializer,
        is_bias: bool = False,
        regularizer: Regularizer = None,
        constraint: Constraint = None,
    ) -> VariationalWeight:
        """Creates one weight tensor with its posterior and its prior.

        Its variables are `kernel_mean`, `kernel_log_scale`, ... for the name "kernel".
        Initializer, regularizer and constraint are those of the posterior mean.
        """

        def add_weight(
            parameter: str,
            shape: Shape,
            initializer: Initializer,
            trainable: bool = True,
        ) -> keras.Variable:
            of_mean = parameter == "mean"
            if self.members > 1:
                initializer = MemberInitializer(initializer, self.members)
                shape = (self.members, *shape)
            variable = self.add_weight(
                name=f"{name}_{parameter}",
                shape=shape,
                initializer=initializer,
                trainable=trainable,
                regularizer=regularizer if of_mean else None,
                constraint=constraint if of_mean else None,
                dtype="float32",
                autocast=False,
            )
            # `tf.train.Checkpoint` saves variables that are attributes.
            setattr(self, f"_variable_{name}_{parameter}", variable)
            return variable

        self._refuse_for_members(
            self.members, {"regularizer": regularizer, "constraint": constraint}
        )
        weight = VariationalWeight(
            name,
            shape,
            fan_in=fan_in,
            posterior=self.bias_posterior if is_bias else self.posterior,
            prior=self.bias_prior if is_bias else self.prior,
            mean_initializer=initializer,
            add_weight=add_weight,
            members=self.members,
            path=f"{self.name}/{name}",
        )
        self._variational_weights.append(weight)
        return weight

    def add_kl_weight(self) -> None:
        """Creates the variable of the weight of the KL divergence: ends `build`."""
        given = self._given_kl_weight
        self._kl_weight = self.add_weight(
            name="kl_weight",
            shape=(),
            initializer=keras.initializers.Constant(
                math.nan if given is None else given
            ),
            trainable=False,
            dtype="float32",
            autocast=False,
        )

    @property
    def variational_weights(self) -> list[VariationalWeight]:
        """The weight tensors that have a posterior, in the order of their creation."""
        return list(self._variational_weights)

    def set_members(self, members: int) -> None:
        """Makes the layer hold `members` posteriors, which start independently.

        A single trained posterior becomes the first member.
        """
        members = positive_integer("members", members)
        if members == self.members:
            return
        self.check_penalties(members)
        if self.members > 1:
            raise ValueError(
                f"The layer '{self.name}' has {self.members} members. "
                f"Received: members={members}"
            )
        self.members = members
        if not self.built:
            return
        kl_weight = self._kl_weight.numpy()
        known = [
            [variable.numpy() for variable in weight.all_variables]
            for weight in self.variational_weights
        ]
        for weight in self.variational_weights:
            untrack_variables(self, weight.all_variables)
        untrack_variables(self, [self._kl_weight])
        with unlocked(self):
            for weight, values in zip(self.variational_weights, known, strict=True):
                weight.set_members(members)
                for variable, value in zip(weight.all_variables, values, strict=True):
                    fresh = variable.numpy()
                    fresh[0] = value
                    variable.assign(fresh)
            self.add_kl_weight()
        self._kl_weight.assign(kl_weight)

    def check_penalties(self, members: int) -> None:
        """Raises ValueError if weights of several members have Keras penalties."""
        # A penalty of the activity is a mean over rows, and so over members.
        penalties = {
            name: getattr(self, name, None)
            for name in inspect.signature(type(self)).parameters
            if name.endswith(("_regularizer", "_constraint"))
            and name != "activity_regularizer"
        }
        self._refuse_for_members(members, penalties)

    def _refuse_for_members(self, members: int, penalties: Mapping[str, Any]) -> None:
        given = {k: v for k, v in penalties.items() if v is not None}
        if members > 1 and given:
            raise ValueError(
                "Regularizers and constraints do not support members; use a prior "
                f"instead. Received: members={members} in '{self.name}' with {given}"
            )

    @property
    def kl_weight(self) -> keras.Variable:
        """Weight of the KL divergence in the loss; not a number while it is unset."""
        return self._kl_weight

    @property
    def kl_weight_is_automatic(self) -> bool:
        """Whether `fit` sets `kl_weight`, because the layer was created without one."""
        return self._given_kl_weight is None

    @property
    def kl_weight_is_set(self) -> bool:
        """Whether the weight of the KL divergence has a value."""
        if self._given_kl_weight is not None:
            return True
        with tf.init_scope():
            value = ops.convert_to_numpy(self._kl_weight)
        # The variables of a layer built while a step is traced have no value yet.
        return value.size == 1 and not math.isnan(value)

    @property
    def step_kl(self) -> Tensor:
        """KL(q || p) of the latest ordinary call in nats, the mean over the members."""
        return self._step.kl

    @property
    def step_draws(self) -> dict[str, Tensor] | None:
        """Weights that were drawn without a gradient in the latest call, or None."""
        return self._step.draws

    def keep_for_score(self, draws: dict[str, Tensor]) -> None:
        """Keeps draws whose gradient `BayesianModel` estimates by `score_function`."""
        if _in_control_flow():
            raise ValueError(
                "The estimator 'score_function' needs draws outside of loops and "
                "conditions such as `keras.ops.while_loop`. Use another estimator, "
                "or `unroll=True`. "
                f"Received: a call of '{self.name}' within one"
            )
        self._step.draws = draws

    @property
    def step_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of the outputs under q in the latest `closed_form` call."""
        return self._step.moments

    def keep_for_loss(self, mean: Tensor, variance: Tensor) -> None:
        """Keeps the outputs' moments, over which `BayesianModel` takes the loss."""
        self._step.moments = mean, variance

    def batch_layout(self) -> BatchLayout:
        """Returns the order of the batch of the current call: members, draws, rows."""
        samples = current_call().samples_in_batch
        if samples is not None:
            return BatchLayout(self.members, samples)
        return BatchLayout(self.members, self.estimator.num_samples, dealt=True)

    def noise_seed(self, place: str, *, shared: bool) -> Tensor:
        """Returns the seed of one piece of this step's noise, by its name.

        All calls of one step share it (weights), or each call has its own.
        """
        step = self._step
        has_noise_of_all = any(
            weight.posterior.shares_noise
            and place in (weight.name, f"{weight.name}_kl")
            for weight in self._variational_weights
        )
        if shared and has_noise_of_all:
            return _seed_of_all_layers(step)
        key = (place, 0 if shared else step.calls)
        index = step.places.setdefault(key, len(step.places))
        return noise.fold(step.seed, index)

    def calls_in_this_pass(self) -> int | None:
        """Returns how often the model being called calls this layer, if known."""
        return calls_per_pass(outermost_layer(self), self)

    def has_rows_first(self) -> bool:
        """Whether the first axis of the layer's inputs is the rows of the model."""
        return row_axes(outermost_layer(self)).has_rows_first(self)

    def begin_call(self) -> None:
        """Selects the noise of the current step at the start of an ordinary call."""
        # One step is one outermost call: its context object is the step's identity.
        # Noise must not cross into another trace. The seed is that of the graph around
        # loops and conditions, so that all iterations and branches share it.
        graph = _graph_of_step()
        identity = (outermost_call(self), graph)
        if self._step.identity != identity:
            if exports_call() and any(
                not weight.posterior.deterministic
                for weight in self.variational_weights
            ):
                _warn_of_exported_draw(self)
            with _within(graph):
                self._steps[_replica()] = _Step(identity, self._next_seed())
        self._step.calls += 1

    def _next_seed(self) -> Tensor:
        seed = tf.bitcast(tf.cast(self._seed_generator.next(), tf.uint32), tf.int32)
        if self.seed is not None:
            # Layers with the same seed must draw different noise.
            model = outermost_layer(self)
            seed = noise.fold(seed, number_of(model, self))
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            seed = noise.fold(seed, context.replica_id_in_sync_group)
        return seed

    @property
    def _step(self) -> _Step:
        # Each replica of a strategy calls the layer in its own thread.
        return self._steps.setdefault(_replica(), _Step())

    @contextlib.contextmanager
    def weights_read_once(self) -> Iterator[None]:
        """Computes the moments and parameters of q once: see `read_once`."""
        with contextlib.ExitStack() as stack:
            for weight in self._variational_weights:
                stack.enter_context(weight.read_once())
            yield

    def count_kl(self, draws: dict[str, Tensor], training: bool | None) -> None:
        """Adds the KL divergence to the losses, once per step.

        The weights that were drawn in this call, by name, estimate a divergence
        without a closed form.
        """
        if training and not self.kl_weight_is_set:
            raise ValueError(
                f"The layer '{self.name}' cannot train: the weight of its KL "
                "divergence is not set. Pass `kl_weight=1/N` with N the number of "
                "training rows, or train with `tfbbb.BayesianModel`, which counts "
                "them. Received: kl_weight=None"
            )
        in_bayesian_model = current_call().samples_in_batch is not None
        if (
            training
            and not in_bayesian_model
            and isinstance(self.estimator, ClosedForm)
        ):
            raise ValueError(
                f"The layer '{self.name}' cannot train: only `tfbbb.BayesianModel` "
                "computes the loss in closed form. Use the layer as the last one of a "
                "`BayesianModel`, or use another estimator. Received: "
                "estimator='closed_form' outside of one"
            )
        model = outermost_layer(self)
        if (
            training
            and self.members > 1
            and not in_bayesian_model
            and isinstance(model, keras.Model)
        ):
            warnings.warn(
                f"The {self.members} members of '{self.name}' train on a part of the "
                "batch each: it must hold the rows once for each member, [members * "
                "rows, ...]. `tfbbb.BayesianModel(inputs, outputs, members=...)` sees "
                "to that by itself.",
                stacklevel=2,
            )
        if not _in_control_flow():
            self._add_kl(draws)
            return
        # The divergence of a step leaves a loop or a condition as its seed does.
        graph = _graph_of_step()
        with _within(graph), call_with(memos={}), self.weights_read_once():
            self._add_kl({})

    def _add_kl(self, draws: dict[str, Tensor]) -> None:
        step = self._step
        if step.calls > 1:
            # The step has counted this layer already; the latest call replaces it.
            remove_loss(self, step.loss)

        def draw(weight: VariationalWeight) -> Tensor:
            if weight.name in draws:
                return draws[weight.name]
            return weight.draw(self.noise_seed(f"{weight.name}_kl", shared=True))

        step.kl = sum(
            tf.reduce_mean(
                self.by_member_factor(
                    kl_divergence(weight, functools.partial(draw, weight))
                )
            )
            for weight in self.variational_weights
        )
        step.loss = tf.convert_to_tensor(self._kl_weight) * step.kl
        self.add_loss(step.loss)

    def by_member_factor(self, divergences: Tensor) -> Tensor:
        """Returns divergences, [members] or [members * samples], times `kl_factors`."""
        # One number for all members, where each has the same temperature and rows.
        if self.kl_factors is None:
            return divergences
        by_member = tf.reshape(divergences, [len(self.kl_factors), -1])
        factors = self.kl_factors[:, np.newaxis]
        return tf.reshape(by_member * factors, tf.shape(divergences))

    def arranged(self, draws: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns draws by name, [samples, *shape], as a prediction multiplies by them.

        A prediction keeps the result, which may come back in place of draws.
        """
        return draws

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises ValueError if a `keras.RematScope` would compute the layer again."""
        call = super().rematerialized_call(layer_call, *args, **kwargs)
        return not_rematerialized(self, layer_call, call)

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError: weights with a posterior are no numbers to round."""
        raise ValueError(
            f"The weights of '{self.name}' have a posterior, not one value each that "
            "could be quantized. Quantize `tfbbb.to_deterministic(model)`, or leave "
            "such layers out: `model.quantize(mode, filters=lambda layer: not "
            "isinstance(layer, tfbbb.layers.VariationalLayer))`. "
            f"Received: {type(self).__name__}"
        )

    def enable_lora(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError: the layer of Keras would add it to a number."""
        raise ValueError(
            f"The weights of '{self.name}' have a posterior, to which Keras cannot add "
            "LoRA. Add adapters to the network by `tfbbb.adapters.add`, and convert it "
            'by `tfbbb.convert(network, where="adapters")`. '
            f"Received: {type(self).__name__}"
        )

    # The layers of Keras save kernel and bias as numbers.
    save_own_variables = keras.Layer.save_own_variables
    load_own_variables = keras.Layer.load_own_variables

    def get_config(self) -> Config:
        config = super().get_config()
        for name in _WITHOUT_MEANING & config.keys():
            del config[name]
        return {
            **config,
            "posterior": posteriors.serialize(self.posterior),
            "prior": priors.serialize(self.prior),
            "bias_posterior": posteriors.serialize(self.bias_posterior),
            "bias_prior": priors.serialize(self.bias_prior),
            "estimator": estimators.serialize(self.estimator),
            "kl_weight": self._given_kl_weight,
            "members": self.members,
            "seed": self.seed,
        }


class MemberInitializer(keras.initializers.Initializer):
    """Gives each of `members` posteriors its own initial values.

    A random initializer with a seed gets another seed for each member but the first,
    which starts as a single posterior would.
    """

    def __init__(self, initializer: Initializer, members: int):
        self.initializer = keras.initializers.get(initializer)
        self.members = members

    def __call__(self, shape: Shape, dtype: DType = None, **kwargs: Any) -> Any:
        own = tuple(shape[1:])
        return tf.stack(
            [
                self._member_initializer(index)(own, dtype=dtype, **kwargs)
                for index in range(self.members)
            ]
        )

    def _member_initializer(self, index: int) -> Any:
        initializer = self.initializer
        seed = getattr(initializer, "seed", None)
        if index == 0 or not isinstance(seed, int):
            return initializer
        return type(initializer)(**{**initializer.get_config(), "seed": seed + index})

    def get_config(self) -> Config:
        return {
            "initializer": keras.initializers.serialize(self.initializer),
            "members": self.members,
        }


def describe_constructor(cls: Any) -> None:
    """Gives a class, for `help`, the arguments of its layer of Keras and ours."""
    of_keras = _layer_of_keras(cls)
    takes_any = "arguments" in inspect.signature(cls.__init__).parameters
    if takes_any and of_keras is not keras.Layer:
        arguments = {
            name: parameter
            for name, parameter in inspect.signature(of_keras).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
            and name not in _WITHOUT_MEANING
        }
        options = constructor_signature(VariationalLayer, VariationalOptions).parameters
        for name in VariationalOptions.__annotations__:
            arguments.setdefault(name, options[name])
    else:
        arguments = dict(constructor_signature(cls, VariationalOptions).parameters)
        arguments.pop("arguments", None)
    cls.__signature__ = inspect.Signature([*arguments.values()])
    document_inherited_arguments(cls)
    if cls.__dict__.get("__doc__"):
        document_arguments(cls, documented_arguments(VariationalLayer.__doc__))


def _layer_of_keras(cls: type) -> type[keras.Layer]:
    """Returns the nearest base class that is a layer of Keras."""
    return next(x for x in cls.__mro__ if x.__module__.startswith("keras."))


describe_constructor(VariationalLayer)


def refuse_without_meaning(cls: type, options: Mapping[str, Any]) -> None:
    """Raises TypeError for options of Keras that weights with a posterior lack."""
    for name in _WITHOUT_MEANING & options.keys():
        if options[name] is not None:
            raise TypeError(
                f"{cls.__name__} has no argument '{name}': its weights have a "
                f"posterior, not one value each. Received: {name}={options[name]!r}"
            )


def not_rematerialized(layer: keras.Layer, layer_call: Any, call: Any) -> Any:
    """Returns `call`, what `rematerialized_call` of a layer made of `layer_call`."""
    if is_rematerialized(layer, layer_call, call):
        raise ValueError(
            "A layer with posteriors cannot be rematerialized, because its second "
            "computation has other draws than its first. Make it, and the models "
            'around it, outside of the `keras.RematScope`, or with `mode="activations"`'
            f". Received: '{layer.name}' of type {type(layer).__name__}"
        )
    return call


class _Step:
    """The state of one layer between its calls in one step."""

    def __init__(self, identity: Any = None, seed: Tensor = None):
        self.identity = identity
        self.seed = seed
        self.calls = 0
        self.places: dict[tuple[str, int], int] = {}
        self.kl: Any = None
        self.loss: Any = None
        self.draws: dict[str, Tensor] | None = None
        self.moments: Any = None


# By the object of a step's outermost call: its graph, and the seed of the first layer.
_SEEDS: weakref.WeakKeyDictionary[Any, tuple[Any, Tensor]] = weakref.WeakKeyDictionary()


def _seed_of_all_layers(step: _Step) -> Tensor:
    """Returns the seed that all layers of the model use in a step."""
    call, graph = step.identity
    known = _SEEDS.get(call)
    # Noise must not cross into another graph.
    if known is None or known[0] is not graph:
        known = _SEEDS[call] = graph, noise.fold(step.seed, -1)
    return known[1]


def _graph_of_step() -> tf.Graph | None:
    """Returns the graph around the loops and conditions of this step."""
    # A loop may be one over steps: only those within the call of a `BayesianModel` are
    # known to be within a step.
    graph, within = current_graph(), current_call().graph
    return graph if within is None else around_control_flow(graph, within)


def _in_control_flow() -> bool:
    return _graph_of_step() is not current_graph()


def _within(graph: tf.Graph | None) -> contextlib.AbstractContextManager[Any]:
    return contextlib.nullcontext() if graph is None else graph.as_default()


def _replica() -> int:
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 0
    return int(tf.get_static_value(context.replica_id_in_sync_group) or 0)


def _warn_of_exported_draw(layer: VariationalLayer) -> None:
    warnings.warn(
        f"The exported call of '{outermost_layer(layer).name}' draws weights anew in "
        "each call, and returns one random draw. To export the predictive "
        "distribution, use `export_predictive` of a `tfbbb.BayesianModel(inputs, "
        "outputs, likelihood=...)`.",
        stacklevel=2,
    )


def _checked_kl_weight(kl_weight: float | None) -> float | None:
    if kl_weight is None:
        return None
    if not is_finite_number(kl_weight) or kl_weight < 0:
        raise ValueError(
            "`kl_weight` must be a non-negative finite number (1/N for N training "
            f"rows) or None. Received: kl_weight={kl_weight!r}"
        )
    return float(kl_weight)
