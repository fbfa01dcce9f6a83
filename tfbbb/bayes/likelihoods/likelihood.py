"""The base class of likelihoods p(y | f)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tfbbb.base import array_ops as ops
from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.lazy import keras, np, tf, when_keras_is_loaded
from tfbbb.base.strategy import Registry, constructor_signature, options
from tfbbb.base.task import Task
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.families.support import Support
from tfbbb.bayes.target_shape import target_width

if TYPE_CHECKING:
    from keras import Layer as _Layer
else:

    class _Layer:
        """Stands for `keras.Layer` until Keras is loaded: at the first likelihood."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            return keras.Layer.__new__(cls, *args, **kwargs)


_OTHER_OPTIONS = {
    "bounds": None,
    "members": 1,
    "exposure": False,
    "known_scale": False,
    "censored": False,
    "ignore_class": None,
}
# Arguments that every layer of Keras has.
_OF_LAYERS = {"name", "trainable", "dtype"}


class Likelihood(_Layer):
    """A distribution p(y | outputs) of one row's targets given the net's outputs.

    `outputs` [..., P] are the network's outputs for one row; leading dimensions (rows,
    posterior samples) are kept. Targets are always in raw units. A likelihood is a
    Keras layer, so its parameters are trained, saved and exported with the model.

    A row may have several places (the steps of a sequence), each with its own targets;
    outputs are then [rows, places..., P]. All methods compute with tensors, in float64
    for float64 outputs and in float32 otherwise; those of a `frozen` likelihood with
    arrays, by the same formulas: see `tfbbb.base.array_ops`.

    Args:
        members: Number of members whose parameters are learned; a model sets it.
        bounds: The least and the greatest target, which no quantile, interval or sample
            exceeds; None for those of the support. `train_table` sets them.
        **kwargs: Options of `keras.Layer`, and `members`, which a model sets.

    Attributes:
        task: `"regression"` or `"classification"`.
        ordered: Whether targets have a distribution function and quantiles.
        masses: The numbers, in order, that have a probability of their own beside a
            density; `prob` is this probability there.
        support: The numbers that a target may be; None for classes.
        binary: Whether there are exactly two classes.
        integrates_location: Whether the location may have a variance, which the
            likelihood adds to the variance of the noise: see `with_location_variance`.
        has_expected_log_prob: Whether `expected_log_prob` is defined.
        slow_quantiles: Whether `quantile` takes much longer than `cdf`.
        takes_exposure: Whether the likelihood has the argument `exposure`.
        takes_event: Whether the likelihood has the argument `censored`.
        censored: Whether a target is a time and whether the event happened then: see
            `tfbbb.likelihoods.Weibull`.
        exposure: Whether the last output is the exposure of the row: see
            `tfbbb.likelihoods.Poisson`.
        num_classes: Number C of the classes of a classification, set by `build`.
        member_weights: Weights of the members in a mixture, which sum to 1; None for
            equal weights.
    """

    task: ClassVar[Task]
    support: Support | None = None
    binary: bool = False
    ordered: bool = False
    masses: tuple[float, ...] = ()
    integrates_location: bool = False
    has_expected_log_prob: bool = False
    slow_quantiles: bool = False
    takes_exposure: ClassVar[bool] = False
    exposure: bool = False
    takes_event: ClassVar[bool] = False
    censored: bool = False
    num_classes: int
    # The values of the variables by their names, of a likelihood without Keras.
    _values: Mapping[str, np.ndarray] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = constructor_signature(cls)
        document_inherited_arguments(cls)

    def __init__(
        self, *, members: int = 1, bounds: Sequence[float] | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.bounds = None if bounds is None else tuple(map(float, bounds))
        # The model sets it. Each member learns the parameters it would learn alone.
        self.members = members
        # `tfbbb.average` sets it.
        self.member_weights: tuple[float, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises TypeError: Keras would call it as a loss."""
        raise TypeError(
            "A likelihood is not a function. To compile a plain Keras model with it, "
            "pass the loss `tfbbb.losses.NegativeLogLikelihood(likelihood)`. "
            f"Received: a call of {type(self).__name__}"
        )

    def get_config(self) -> Config:
        """Returns the keyword arguments that make an equal likelihood."""
        config = super().get_config()
        # mypy looks for the hash of a class in its instances.
        names = options(type(self))  # type: ignore[arg-type]
        config |= {name: getattr(self, name) for name in names}
        # Those that jobs do not give, where they are not the default.
        for name, default in _OTHER_OPTIONS.items():
            value = getattr(self, name, default)
            if value != default:
                config[name] = list(value) if isinstance(value, tuple) else value
        return config

    @property
    def limits(self) -> tuple[float, ...] | None:
        """The `bounds`, by default those of the support; None for classes."""
        if self.bounds is not None or self.support is None:
            return self.bounds
        return self.support.least, self.support.greatest

    @classmethod
    def support_of(cls, **options: Any) -> Support | None:
        """Returns the `support` of the likelihood with these arguments."""
        return cls.support

    def copy_for(self, members: int, output_shape: tuple[int | None, ...]) -> Self:
        """Returns a likelihood for a model of other members, with the same variables.

        Parameters that a single posterior has learned become those of every member.
        """
        copy = type(self).from_config({**self.get_config(), "members": members})
        copy.build(output_shape)
        for old, new in zip(self.variables, copy.variables, strict=True):
            if tuple(new.shape) not in (tuple(old.shape), (members, *old.shape)):
                raise ValueError(
                    "The likelihood of another model has parameters of another shape. "
                    "Pass a new likelihood. Received: "
                    f"likelihood={type(self).__name__} with {old.name} of shape "
                    f"{tuple(old.shape)} for {tuple(new.shape)}"
                )
            new.assign(np.broadcast_to(old.numpy(), new.shape))
        return copy

    @property
    def discrete(self) -> bool:
        """Whether targets are integers, `cdf` a step function and `prob` a mass."""
        return self.support is not None and self.support.integer

    @property
    def unbounded(self) -> bool:
        """Whether a target may be any real number."""
        return self.support is not None and self.support.unbounded

    @property
    def learns(self) -> bool:
        """Whether the likelihood has trainable variables."""
        return False

    @property
    def starts_at_residuals(self) -> bool:
        """Whether the noise starts at the residuals of a network trained before."""
        return False

    @property
    def learned_variables(self) -> list[keras.Variable]:
        """The trainable variables: with several members, each has their axis first."""
        return []

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        self._output_shape = tuple(output_shape)
        self._places = self._output_shape[1:-1]

    def add_weight(self, *args: Any, **options: Any) -> Any:
        if self._values is not None:
            return self._values[options["name"]]
        return super().add_weight(*args, **options)

    @classmethod
    def of_values(
        cls,
        config: Config,
        output_shape: Sequence[int | None],
        values: Mapping[str, ArrayLike],
    ) -> Self:
        """Returns a likelihood that computes with arrays, also where Keras is not.

        Its variables are the `values` by their names. Everything but what trains them
        takes arrays and returns arrays.
        """
        arrays = {name: np.asarray(value) for name, value in values.items()}
        found = cls.with_values(config, arrays)
        found.build(tuple(output_shape))
        return found

    @classmethod
    def with_values(
        cls, config: Config, values: Mapping[str, np.ndarray] | None
    ) -> Self:
        """Returns a likelihood to build, which has these `values` without Keras."""
        if values is None:
            return cls(**config)
        found = object.__new__(cls)
        found._values = values
        found.__init__(**config)  # type: ignore[misc]
        return found

    def to_values(self) -> dict[str, Any]:
        """Returns the arguments of `of_values` for the present values, by name."""
        config = self.get_config()
        return {
            "config": {name: config[name] for name in config.keys() - _OF_LAYERS},
            "output_shape": self._output_shape,
            "values": {
                variable.name: np.asarray(variable.value) for variable in self.variables
            },
        }

    def frozen(self) -> Self:
        """Returns a likelihood of the present values that computes with arrays."""
        if self._values is not None:
            return self
        found = self.of_values(**self.to_values())
        found.member_weights = self.member_weights
        return found

    def not_void(self, targets: ArrayLike) -> Tensor | None:
        """Returns which targets of a minibatch are not of a void class, or None."""
        return None

    def labels(self, targets: ArrayLike) -> Tensor:
        """Returns the class indices of a minibatch's targets, [rows, places...]."""
        raise NotImplementedError(f"{type(self).__name__} has no classes.")

    def num_outputs(self, num_targets: int) -> int:
        """Returns how many outputs the network needs for `num_targets` targets."""
        raise NotImplementedError

    def num_integrated(self, num_outputs: int) -> int:
        """Returns how many outputs, the first ones, are locations with a variance."""
        return 0

    @property
    def adapted(self) -> bool:
        """Whether shift and scale are set, or the likelihood has none."""
        return True

    def adapt(
        self,
        targets: ArrayLike,
        counted: ArrayLike = None,
        double: bool = False,
        exposures: ArrayLike = None,
    ) -> None:
        """Sets shift and scale at the first call, and widens the range at each.

        `double` targets train in double precision, so that they may differ by less than
        single precision holds. A likelihood with an `exposure` needs the `exposures`.
        """

    @property
    def target_widths(self) -> tuple[int, ...]:
        """The sizes that the last axis of targets may have."""
        raise NotImplementedError

    def check_targets(
        self, targets: ArrayLike, counted: ArrayLike = None
    ) -> np.ndarray:
        """Validates targets and returns them in the shape that `log_prob` takes.

        Only those that are `counted`, [rows, places...] or [rows], are validated.
        """
        raise NotImplementedError

    def negative_log_likelihood(
        self,
        targets: ArrayLike,
        outputs: Tensor,
        weights: Tensor | None = None,
        variance: Tensor | None = None,
    ) -> Tensor:
        """Returns -log p(targets | outputs) of each row, [rows].

        It computes in float64 for float64 targets, whose differences single precision
        may lose. `weights` multiply the log probability of each place, [rows, ...], and
        targets with the weight 0 may have any values. With a `variance` the outputs are
        normal with the mean `outputs`, and the result is the expectation over them.
        """
        outputs = tf.convert_to_tensor(outputs)
        aligned = self.aligned(targets, outputs)
        dtype = None
        if aligned.dtype == "float64" != outputs.dtype:
            dtype, outputs = "float32", tf.cast(outputs, "float64")
        if weights is not None:
            aligned = self.with_placeholders(aligned, weights != 0)
        with tf.control_dependencies(self.checks_of_step(targets, aligned)):
            if variance is None:
                log_prob = self.log_prob(aligned, outputs)
            else:
                log_prob = self.expected_log_prob(aligned, outputs, variance)
        if weights is not None:
            log_prob *= tf.cast(weights, log_prob.dtype)
        axes = range(1, len(outputs.shape) - 1)
        summed = -tf.reduce_sum(log_prob, axis=list(axes))
        return summed if dtype is None else tf.cast(summed, dtype)

    def checks_of_step(self, given: ArrayLike, aligned: Tensor) -> list[Tensor]:
        """Returns operations that fail where targets of a step are not possible."""
        return []

    def with_placeholders(self, targets: Tensor, counted: Tensor) -> Tensor:
        """Returns targets with a possible value where places do not count."""
        possible = 0.0
        if self.support is not None:
            possible = min(max(1.0, self.support.least), self.support.greatest)
        if len(targets.shape) > len(counted.shape):
            counted = counted[..., ops.newaxis]
        return ops.where(counted, targets, ops.cast(possible, targets.dtype))

    def aligned(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        """Reshapes the targets of a minibatch for `log_prob`, without reading them."""
        raise NotImplementedError

    def width_of(self, targets: Tensor, outputs: Tensor) -> int | None:
        """Returns the size of the last axis of targets, None if they have none."""
        # When the dataset changes, Keras may retrace with targets of unknown rank.
        if targets.shape.rank is None:
            return None
        shape, places = targets.shape.as_list(), outputs.shape[1:-1].as_list()
        width = target_width(shape, places, self.target_widths)
        unknown = [None in sizes for sizes in zip(shape[1:], places, strict=False)]
        if sum(unknown) > 1:
            # A reshape would exchange the height and width of an image.
            tf.debugging.assert_equal(
                tf.shape(targets)[: 1 + len(places)],
                tf.shape(outputs)[:-1],
                "The targets must have the places of the outputs.",
            )
        return width

    def as_array(self, values: ArrayLike) -> Tensor:
        """Returns values as a tensor, or as an array of a frozen likelihood."""
        if self._values is None:
            return tf.convert_to_tensor(values)
        return np.asarray(values)

    def at_least_float32(self, outputs: ArrayLike) -> Tensor:
        """Returns outputs below single precision in single precision."""
        outputs = self.as_array(outputs)
        return outputs if outputs.dtype == "float64" else ops.cast(outputs, "float32")

    def of_members(self, outputs: Tensor, member: int | Tensor) -> Tensor:
        """Appends the learned parameters of the member of each output, [..., P].

        With several members, all other methods take the returned outputs, whose last
        dimension may be larger than P.
        """
        return self.as_array(outputs)

    def with_location_variance(self, outputs: Tensor, variance: Tensor) -> Tensor:
        """Appends the variance of normal locations to outputs, [..., P + k].

        This integrates over a linear last layer: the first k outputs are normal with
        this variance, in the units of the network. For the returned outputs, all
        answers include both variances but `parameters` and `variance`, of the noise.
        """
        raise NotImplementedError(f"{type(self).__name__} integrates no location.")

    def with_further_location(self, outputs: Tensor, further: Tensor) -> Tensor:
        """Returns outputs whose first k, the locations, are moved, in their units."""
        outputs = self.as_array(outputs)
        width = further.shape[-1]
        moved = outputs[..., :width] + ops.cast(further, outputs.dtype)
        return ops.concat([moved, outputs[..., width:]], axis=-1)

    def log_units(self, further: Tensor) -> Tensor:
        """Returns differences of locations as those of `log y`, by default 0."""
        return ops.zeros_like(further)

    def locations(
        self, targets: ArrayLike, exposures: ArrayLike = None
    ) -> np.ndarray | None:
        """Returns the locations [n, k] of targets in the network's units, if any."""
        return None

    def location_variance(self, outputs: Tensor) -> Tensor:
        """Returns the variance of the locations, [..., k], in raw units, or 0."""
        return ops.zeros_like(self.mean(outputs))

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns the parameters of p(y | outputs), [..., k] each, by their names."""
        raise NotImplementedError

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns E[y | outputs], [..., k]; for classes, of the one-hot target."""
        raise NotImplementedError

    def point_prediction(self, outputs: Tensor) -> Tensor:
        """Returns the outputs of a plain Keras network: means, or probabilities."""
        return self.mean(outputs)

    def variance(self, outputs: Tensor) -> Tensor:
        """Returns Var[y | outputs], [..., k]: the variance of the noise."""
        raise NotImplementedError

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Returns the probability of each class, [..., C]."""
        raise NotImplementedError(f"{type(self).__name__} has no classes.")

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns log p(targets | outputs), [...], in nats, summed over the targets."""
        raise NotImplementedError

    def expected_log_prob(
        self, targets: ArrayLike, outputs: Tensor, variance: Tensor
    ) -> Tensor:
        """Returns E[log p(targets | f)] over normal f of these moments, [..., P]."""
        raise NotImplementedError(f"{type(self).__name__} has no closed form.")

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns P(y <= values | outputs), target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns the density or mass of y at `values`, target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns the quantiles of y given outputs, target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    @property
    def noise_size(self) -> int:
        """Number of standard normals that `sample` needs for one draw."""
        raise NotImplementedError

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Returns draws of y by standard normal noise, [..., noise_size].

        Of numbers [..., k]; of classes their indices, [...].
        """
        raise NotImplementedError


def over_targets(counted: ArrayLike, values: np.ndarray) -> np.ndarray:
    """Returns which rows or places count as an array of the shape of the targets."""
    counted = np.asarray(counted, bool)
    trailing = [1] * (values.ndim - counted.ndim)
    return np.broadcast_to(counted.reshape(*counted.shape, *trailing), values.shape)


def first_row(wrong: np.ndarray) -> int:
    """Returns the first row in which anything is wrong."""
    return int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))


def given_noise(options: object) -> str | None:
    """Returns the name of the argument that gives the noise, or None."""
    names = ("scale", "concentration")
    return next((n for n in names if getattr(options, n, None) is not None), None)


def _become_layers() -> None:
    Likelihood.__bases__ = (keras.Layer,)


when_keras_is_loaded(_become_layers)
registry = Registry(Likelihood, package="tfbbb.likelihoods")
register = registry.register
