"""What all variational layers share: weights, objective, noise, configuration."""

import functools
import math
from contextvars import ContextVar
from typing import Any, Protocol, TypedDict

import keras
import tensorflow as tf
from keras import ops

from tfbbb import estimators, noise, posteriors, priors
from tfbbb.divergences import kl_divergence
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.layers.variational_weight import VariationalWeight


class PredictionEngine(Protocol):
    """What a layer asks for its output while a posterior predictive is computed."""

    def pre_activations(self, layer: "VariationalLayer", inputs: Any) -> Any:
        """Returns draws of the layer's output before its activation."""


active_engine: ContextVar[PredictionEngine | None] = ContextVar(
    "active_engine", default=None
)


class VariationalOptions(TypedDict, total=False):
    """The options that all variational layers share: see `VariationalLayer`."""

    posterior: Any
    prior: Any
    bias_posterior: Any
    bias_prior: Any
    estimator: Any
    kl_weight: float | None
    kernel_initializer: Any
    bias_initializer: Any
    seed: int | None
    name: str | None
    dtype: Any
    trainable: bool


class VariationalLayer(keras.Layer):
    """Base of the layers whose weights `w` have a posterior q(w) and a prior p(w).

    Every ordinary call draws weights or outputs, training or not, and adds

        kl_weight * KL(q(w) || p(w))

    to the losses, once per step however often the layer is called in it. A subclass
    says what is linear in its kernel (`linear`), creates its weights in `build` by
    `add_variational_weights`, and leaves the rest to this class.

    Args:
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added.
        posterior: q of the kernel, by name or as a `tfbbb.posteriors.Posterior`.
        prior: p of the kernel, by name or as a `tfbbb.priors.Prior`.
        bias_posterior: q of the bias.
        bias_prior: p of the bias.
        estimator: How noise reaches the output: `"auto"`, `"local"`, `"weight"`,
            `"flipout"` or a `tfbbb.estimators.Estimator`.
        kl_weight: Weight of the KL divergence in the loss, `1/N` for `N` training
            rows; a non-negative finite number. With `None`, `BayesianModel.fit` sets
            it, and training with it unset is an error.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        seed: Integer that fixes the noise of training.
    """

    def __init__(
        self,
        *,
        activation: Any = None,
        use_bias: bool = True,
        posterior: Any = "mean_field_normal",
        prior: Any = "normal",
        bias_posterior: Any = "mean_field_normal",
        bias_prior: Any = "normal",
        estimator: Any = "auto",
        kl_weight: float | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.posterior = posteriors.get(posterior)
        self.prior = priors.get(prior)
        self.bias_posterior = posteriors.get(bias_posterior)
        self.bias_prior = priors.get(bias_prior)
        self.estimator = estimators.get(estimator)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed = seed
        self.estimator.check_posteriors(
            self.posterior, self.bias_posterior if use_bias else None
        )
        self._given_kl_weight = _checked_kl_weight(kl_weight)
        self._seed_generator = keras.random.SeedGenerator(seed)
        self._step = _Step()
        self.supports_masking = True
        # XLA draws random numbers about ten times slower than TensorFlow's kernels on
        # a CPU: no version of Keras may choose it there by `jit_compile="auto"`.
        self.supports_jit = False

    def add_variational_weights(
        self,
        *,
        input_rank: int,
        kernel_shape: tuple[int, ...],
        bias_shape: tuple[int, ...],
        fan_in: int,
    ) -> None:
        """Creates `kernel`, `bias` and the weight of the KL divergence.

        Args:
            input_rank: Rank of the input that the layer is built for.
            kernel_shape: Shape of the kernel.
            bias_shape: Shape of the bias.
            fan_in: Number of inputs that one output unit sums over.
        """
        self.input_rank = input_rank
        self.kernel = self._add_variational_weight(
            "kernel",
            kernel_shape,
            fan_in,
            self.posterior,
            self.prior,
            self.kernel_initializer,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self._add_variational_weight(
                "bias",
                bias_shape,
                1,
                self.bias_posterior,
                self.bias_prior,
                self.bias_initializer,
            )
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

    def _add_variational_weight(
        self,
        name: str,
        shape: tuple[int, ...],
        fan_in: int,
        posterior: posteriors.Posterior,
        prior: priors.Prior,
        mean_initializer: Any,
    ) -> VariationalWeight:
        def add_weight(parameter: str, shape: Any, initializer: Any) -> keras.Variable:
            return self.add_weight(
                name=f"{name}_{parameter}",
                shape=shape,
                initializer=initializer,
                dtype="float32",
                autocast=False,
            )

        return VariationalWeight(
            name,
            shape,
            fan_in=fan_in,
            posterior=posterior,
            prior=prior,
            mean_initializer=mean_initializer,
            add_weight=add_weight,
        )

    @property
    def variational_weights(self) -> list[VariationalWeight]:
        """The weight tensors that have a posterior: kernel, then bias if any."""
        return [self.kernel] if self.bias is None else [self.kernel, self.bias]

    @property
    def kl_weight(self) -> keras.Variable:
        """Weight of the KL divergence in the loss; not a number while it is unset."""
        return self._kl_weight

    @property
    def kl_weight_is_automatic(self) -> bool:
        """Whether the layer was made with `kl_weight=None`: `fit` is to set it."""
        return self._given_kl_weight is None

    @property
    def kl_weight_is_set(self) -> bool:
        """Whether the weight of the KL divergence has a value."""
        if self._given_kl_weight is not None:
            return True
        with tf.init_scope():
            value = ops.convert_to_numpy(self._kl_weight)
        # A layer that is built while a step is traced has no value yet.
        return value.size == 1 and not math.isnan(value)

    @property
    def step_kl(self) -> Any:
        """KL(q || p) in nats as counted in the latest ordinary call, or None."""
        return self._step.kl

    def linear(self, inputs: Any, kernel: Any) -> Any:
        """Returns what the layer computes from `inputs` linearly in `kernel`.

        Args:
            inputs: [batch, ...], or [samples, batch, ...] with a kernel per sample.
            kernel: A kernel, or [samples, *kernel_shape].
        """
        raise NotImplementedError

    def is_local_exact(self, input_rank: int, calls: int | None) -> bool:
        """Whether drawing pre-activations is exact: each weight is used once per row.

        Args:
            input_rank: Rank of the layer's input.
            calls: How often the layer is called in one pass, None where not known.
        """
        raise NotImplementedError

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        engine = active_engine.get()
        if engine is not None:
            return self.activation(engine.pre_activations(self, inputs))
        self._begin_call()
        outputs, draws = self.estimator(self, inputs)
        self._add_kl(draws, training)
        return self.activation(outputs)

    def noise_seed(self, place: str, *, shared: bool) -> Any:
        """Returns the seed of one piece of this step's noise.

        Args:
            place: Name of the piece.
            shared: Whether all calls of one step share it (weights) or each call has
                its own (pre-activations).
        """
        index = _PLACES.index(place)
        return noise.fold(
            self._step.seed, index if shared else index + 16 * self._step.calls
        )

    def calls_in_this_pass(self) -> int | None:
        """Returns how often the model now being called calls this layer.

        None where that is not known: in a subclassed model.
        """
        return calls_per_pass(self._get_call_context().entry_layer, self)

    def _begin_call(self) -> None:
        # One step is one outermost call: its context object is the step's identity.
        # Noise must not cross into another graph (the body of a loop, another trace).
        identity = (self._get_call_context(), _current_graph())
        if self._step.identity != identity:
            seed = tf.bitcast(tf.cast(self._seed_generator.next(), tf.uint32), tf.int32)
            self._step = _Step(identity, seed)
        self._step.calls += 1

    def _add_kl(self, draws: dict[str, Any], training: bool | None) -> None:
        if training and not self.kl_weight_is_set:
            raise ValueError(
                f"The layer '{self.name}' cannot train: the weight of its KL "
                "divergence is not set. Pass `kl_weight=1/N` with N the number of "
                "training rows, or train with `tfbbb.BayesianModel`, which counts "
                "them. Received: kl_weight=None"
            )
        step = self._step
        if step.calls > 1:
            # The step has counted this layer already; the latest call replaces it.
            self._losses[:] = [loss for loss in self._losses if loss is not step.loss]

        def draw(weight: VariationalWeight) -> Any:
            if weight.name in draws:
                return draws[weight.name]
            return weight.draw(self.noise_seed(f"{weight.name}_kl", shared=True))

        step.kl = sum(
            kl_divergence(weight, functools.partial(draw, weight))
            for weight in self.variational_weights
        )
        step.loss = tf.convert_to_tensor(self._kl_weight) * step.kl
        self.add_loss(step.loss)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(
            {
                "activation": keras.activations.serialize(self.activation),
                "use_bias": self.use_bias,
                "posterior": posteriors.serialize(self.posterior),
                "prior": priors.serialize(self.prior),
                "bias_posterior": posteriors.serialize(self.bias_posterior),
                "bias_prior": priors.serialize(self.bias_prior),
                "estimator": estimators.serialize(self.estimator),
                "kl_weight": self._given_kl_weight,
                "kernel_initializer": keras.initializers.serialize(
                    self.kernel_initializer
                ),
                "bias_initializer": keras.initializers.serialize(self.bias_initializer),
                "seed": self.seed,
            }
        )
        return config


_PLACES = (
    "kernel",
    "bias",
    "pre_activations",
    "input_signs",
    "output_signs",
    "bias_signs",
    "kernel_kl",
    "bias_kl",
)


class _Step:
    """What one layer keeps between its calls of one step."""

    def __init__(self, identity: Any = None, seed: Any = None):
        self.identity = identity
        self.seed = seed
        self.calls = 0
        self.kl: Any = None
        self.loss: Any = None


def _current_graph() -> Any:
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _checked_kl_weight(kl_weight: float | None) -> float | None:
    if kl_weight is None:
        return None
    value = float(kl_weight)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(
            "`kl_weight` must be a non-negative finite number (1/N for N training "
            f"rows) or None. Received: kl_weight={kl_weight}"
        )
    return value
