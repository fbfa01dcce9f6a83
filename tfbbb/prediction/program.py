"""The functions that the predictions of one model by one plan are made of."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.private_apis import version_read
from tfbbb.base.types import Shape, Tensor
from tfbbb.base.types import Structure as Nested
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.layers.row_axes import row_axes
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.blocks import Sizes
from tfbbb.prediction.compiled import compiled_if_repeated, to_specs, traced
from tfbbb.prediction.draws import Tensors, draw, local_moments, normal_noise
from tfbbb.prediction.dropout import is_dropout
from tfbbb.prediction.linearised import linearised_outputs, weight_means
from tfbbb.prediction.network_pass import SEED_STATE, NetworkPass
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.structure import Structure, structure_of_outputs
from tfbbb.prediction.summary import summary

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)
# The number of kinds of predictions that keep their draws for the next one.
_MOST_KEPT = 4
# Names of variables of training, which no prediction reads.
_OF_TRAINING = ("kl_weight", "num_rows", SEED_STATE)
# The draws of the extrapolation, beside those of the layers.
_BEYOND = "beyond"


class Snapshot:
    """The values of variables at one moment, which later assignments do not change."""

    def __init__(self, values: Nested):
        self.values = values
        self._versions = [version_read(value) for value in tf.nest.flatten(values)]

    def is_same(self, other: "Snapshot") -> bool:
        """Whether no variable changed between two snapshots of the same variables."""
        return self._versions == other._versions


State = list[tuple[keras.Variable, tf.Tensor]]
# Passes, the recalibration of their answers, and the values of the variables.
BoundPasses = tuple[Passes, Recalibration, Snapshot]


class Program:
    """A prediction as functions of tensors and of the model's variables.

    `moments`, `draws`, `outputs` and `answer` are pure: exports trace them.
    `passes` makes them functions of the values of the variables, which are compiled
    once for any number of rows if they are repeated, and reads the present values. The
    passes keep the moments of weights, the noise and the drawn weights for the next
    prediction, until the variables change.

    One likelihood for a model of several outputs makes the outputs members of one
    mixture: see `tfbbb.average`.

    Weights are drawn from `held_moments`, as `local_moments` returns them, if these are
    given and suffice. `num_beyond` is the number k of locations with a further
    deviation in each row, of a model with one likelihood; the inputs are then a pair of
    the model's and of the deviations, [rows, k]: see `tfbbb.Extrapolation`.
    """

    def __init__(
        self,
        model: keras.Model,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Tensor,
        recalibration: Recalibration = IDENTITY,
        held_moments: Tensors | None = None,
        num_beyond: int = 0,
    ):
        self.model = model
        self.plan = plan
        self.recalibration = recalibration
        self._held_moments = held_moments
        self.num_beyond = num_beyond
        self.structure = Structure.of(model)
        self.input_specs = tree.map_structure(_rows_unknown, inputs)
        draws = is_dropout if plan.dropout else None
        self.axes = row_axes(model, self.input_specs, draws)
        self.axes.check_outputs()
        outputs = tree.flatten(structure_of_outputs(model, self.input_specs))
        # One likelihood may be that of all outputs.
        self.networks = len(outputs) // len(likelihoods)
        outputs = outputs[:: self.networks]
        self.likelihoods = tuple(
            likelihood
            if id(likelihood) in self.structure.indices
            else _copy(likelihood, output.shape)
            for likelihood, output in zip(likelihoods, outputs, strict=True)
        )
        self.members = self.networks * self.structure.members
        self.event_shapes = [
            self._event_shape(likelihood, output.shape)
            for likelihood, output in zip(self.likelihoods, outputs, strict=True)
        ]
        # Kept until the values change.
        self._bound: BoundPasses | None = None

    @classmethod
    def of(
        cls,
        structure: Structure,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Tensor,
        recalibration: Recalibration = IDENTITY,
        num_beyond: int = 0,
    ) -> "Program":
        """Returns a model's program, which the first call of its kind makes."""
        # Other parts change answers, which are not compiled.
        recalibration = recalibration.density
        if not recalibration.acts_on_outputs:
            recalibration = IDENTITY
        model = structure.model
        kinds = tree.map_structure(lambda x: (*x.shape[1:], x.dtype.name), inputs)
        keys = [_key(x, structure) for x in likelihoods]
        key = (plan, repr(kinds), recalibration, num_beyond, *keys)

        def make() -> Program:
            given = likelihoods, plan, inputs, recalibration
            return cls(model, *given, num_beyond=num_beyond)

        found: Program = structure.program(key, make)
        return found

    @property
    def argument_specs(self) -> Tensor:
        """The specs of the inputs, with the deviations if there are any."""
        if not self.num_beyond:
            return self.input_specs
        return [self.input_specs, tf.TensorSpec([None, self.num_beyond], tf.float32)]

    @functools.cached_property
    def sizes(self) -> Sizes:
        """The sizes of a pass."""
        return Sizes(
            members=self.members,
            widest=self.structure.widest,
            outputs=sum(shape.num_elements() or 1 for shape in self.event_shapes),
            # A draw is made of the numbers of one network alone.
            drawn=-(-self.plan.floats_per_draw(self.structure) // self.networks),
        )

    def moments(self) -> Tensors:
        """Returns the moments of the weights whose pre-activations are drawn.

        For a linearised network, the means of all weights.
        """
        if self.plan.linearised:
            return weight_means(self.structure)
        return local_moments(self.structure, self.plan)

    def draws(self, seed: Tensor, first: int | Tensor, count: int | Tensor) -> Tensors:
        """Returns noise and weights of `count` rounds of draws, from `first` on."""
        moments = self._held_moments
        arrange = not (self.plan.linearised or self.axes.unfoldable)
        drawn = draw(
            self.structure, self.plan, seed, first, count, moments, arrange=arrange
        )
        if self.num_beyond:
            # As of a layer after all others.
            place = len(self.structure.indices)
            noise = normal_noise(
                drawn["source"], self.members, place, 0, [self.num_beyond]
            )
            drawn[_BEYOND] = {"noise": noise}
        return drawn

    def outputs(
        self, inputs: Tensor, moments: Tensors, draws: Tensors
    ) -> list[tf.Tensor]:
        """Returns the outputs as the likelihoods take them, [rows, S, ..., P] each."""
        inputs, deviations = self._split(inputs)
        count = 2 * self.structure.members * draws["source"]["count"]
        if self.plan.linearised:
            outputs = linearised_outputs(
                self.model, self.structure, inputs, moments, draws, count
            )
            variances: list[tf.Tensor | None] = [None] * len(outputs)
        else:
            network_pass = NetworkPass(
                self.model, self.structure, self.plan, moments, draws, count
            )
            outputs, variances = network_pass.run(inputs)
        found = [
            (self._rows_first(x), None if v is None else self._rows_first(v))
            for x, v in zip(outputs, variances, strict=True)
        ]
        joined = self._joined(found)
        if deviations is None:
            return joined
        return [self._beyond(x, deviations, draws[_BEYOND]["noise"]) for x in joined]

    def answer(
        self, inputs: Tensor, moments: Tensors, draws: Tensors
    ) -> tuple[list[dict[str, tf.Tensor]], list[tf.Tensor]]:
        """Returns the summary of each output, and the outputs."""
        outputs = self.outputs(inputs, moments, draws)
        pairs = zip(self.likelihoods, outputs, strict=True)
        return [summary(*pair, self.members) for pair in pairs], outputs

    def passes(self, recalibration: Recalibration = IDENTITY) -> Passes:
        """Returns the passes with the present values of the variables."""
        values = self._read()
        bound = self._bound
        if (
            bound is None
            or bound[1] is not recalibration
            or not bound[2].is_same(values)
        ):
            passes = self._bind(values, recalibration)
            self._bound = bound = passes, recalibration, values
            self._drop_others()
        return bound[0]

    def _bind(self, values: Snapshot, recalibration: Recalibration) -> Passes:
        """Returns passes with the values that the variables had at one moment.

        The passes hold the values because the result of a prediction can be asked
        later.
        """
        posterior, others = values.values
        state = list(zip(self._variables[1], others, strict=True))
        moments: Tensors | None = None

        def arguments(inputs: Tensor, draws: Tensors) -> tuple[Tensor, ...]:
            nonlocal moments
            if moments is None:
                moments = self._moments(posterior)
            return others, inputs, moments, draws

        def coherent() -> Passes:
            plan = Plan(dropout=self.plan.dropout, linearised=self.plan.linearised)
            program = Program.of(
                self.structure,
                self.likelihoods,
                plan,
                self.input_specs,
                recalibration,
                self.num_beyond,
            )
            return program._bind(values, recalibration)

        return Passes(
            draw=lambda *rounds: self._draw(posterior, *rounds),
            outputs=lambda *given: self._outputs(*arguments(*given)),
            answer=lambda *given: self._answer(*arguments(*given)),
            coherent=coherent,
            sizes=self.sizes,
            answers=[
                Answers(_at_state(likelihood, state), recalibration, self.members)
                for likelihood in self.likelihoods
            ],
            groups=lambda given: recalibration.groups(self._split(given)[0]),
            mixes_rows=self.axes.mixes_rows,
        )

    def _drop_others(self) -> None:
        """Drops the draws of other programs that are old or from old weights."""
        programs = list(self.structure.programs.values())
        for place, other in enumerate(reversed(programs)):
            bound = other._bound
            if bound is not None and not (
                place < _MOST_KEPT and bound[2].is_same(other._read())
            ):
                other._bound = None

    @functools.cached_property
    def _variables(self) -> tuple[list[keras.Variable], list[keras.Variable]]:
        """The variables of the posteriors, and all others a prediction may read."""
        posterior = [
            variable
            for info in self.structure.layer_infos
            for weight in info.layer.variational_weights
            for variable in weight.all_variables
        ]
        known = {id(variable) for variable in posterior}
        others = [*self.model.variables]
        for likelihood in self.likelihoods:
            others += likelihood.variables
        found = {
            id(variable): variable
            for variable in others
            if id(variable) not in known and variable.name not in _OF_TRAINING
        }
        return posterior, list(found.values())

    @functools.cached_property
    def _read(self) -> Callable[[], Snapshot]:
        return _reader(self._variables)

    @functools.cached_property
    def _moments(self) -> Callable[..., Tensors]:
        moments = _with_values(self._variables[0], self.moments)
        return compiled_if_repeated(moments, lambda: self._traced_moments)

    @functools.cached_property
    def _traced_moments(self) -> tf.types.experimental.ConcreteFunction:
        posterior, _ = self._variables
        return traced(_with_values(posterior, self.moments), to_specs(posterior))

    @functools.cached_property
    def _traced_draws(self) -> tf.types.experimental.ConcreteFunction:
        posterior, _ = self._variables
        draws = _with_values(posterior, self.draws)
        return traced(draws, to_specs(posterior), _SEED, _INTEGER, _INTEGER)

    @functools.cached_property
    def _draw(self) -> Callable[..., Tensors]:
        draws = _with_values(self._variables[0], self.draws)
        return compiled_if_repeated(draws, lambda: self._traced_draws)

    @functools.cached_property
    def _answer(self) -> Callable[..., Any]:
        return self._compile(self.answer)

    @functools.cached_property
    def _outputs(self) -> Callable[..., Any]:
        return self._compile(self.outputs)

    def _compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiles a function of inputs, moments and draws, if it is repeated."""
        _, others = self._variables
        pure = _with_values(others, function)

        def trace() -> tf.types.experimental.ConcreteFunction:
            return traced(
                pure,
                to_specs(others),
                self.argument_specs,
                to_specs(self._traced_moments.structured_outputs),
                to_specs(self._traced_draws.structured_outputs),
            )

        def numbers(_: Any, inputs: Tensor, __: Any, draws: Tensors) -> float:
            rounds = 2.0 * self.members * float(draws["source"]["count"])
            return len(tree.flatten(inputs)[0]) * rounds * self.structure.widest

        return compiled_if_repeated(pure, trace, numbers)

    def _joined(
        self, found: Sequence[tuple[tf.Tensor, tf.Tensor | None]]
    ) -> list[tf.Tensor]:
        """Returns outputs as the likelihoods take them, those of networks as members.

        Takes each output, [rows, R, 2, K, ..., P], with the variance of its integrated
        mean, [rows, R, 2, K, k], or None.
        """
        outputs = []
        for index, likelihood in enumerate(self.likelihoods):
            parts = found[index * self.networks : (index + 1) * self.networks]
            values, variances = zip(*parts, strict=True)
            variance = variances[0]
            if variance is not None and len(parts) > 1:
                variance = tf.concat(variances, axis=3)
            joined = values[0] if len(parts) == 1 else tf.concat(values, axis=3)
            outputs.append(self._complete(likelihood, joined, variance))
        return outputs

    def _split(self, given: Any) -> tuple[Any, tf.Tensor | None]:
        """Returns the model's inputs, and the deviations beside them, if any."""
        return (given[0], given[1]) if self.num_beyond else (given, None)

    def _beyond(self, outputs: Tensor, deviations: Tensor, noise: Tensor) -> tf.Tensor:
        """Moves the locations, [rows, S, P'], by deviations [rows, k] times noise."""
        split = tf.reshape(noise, [self.members, 2, -1, self.num_beyond])
        by_draw = tf.reshape(tf.transpose(split, [2, 1, 0, 3]), [-1, self.num_beyond])
        further = deviations[:, tf.newaxis] * by_draw
        return self.likelihoods[0].with_further_location(outputs, further)

    def _rows_first(self, outputs: Tensor) -> tf.Tensor:
        """Returns [S, rows, ...] by member, sign and round as [rows, R, 2, K, ...]."""
        rows, *event = dimensions(outputs, 1)
        split = tf.reshape(outputs, [self.structure.members, 2, -1, rows, *event])
        return tf.transpose(split, [3, 2, 1, 0, *range(4, len(split.shape))])

    def _complete(
        self,
        likelihood: Likelihood,
        outputs: Tensor,
        location_variance: tf.Tensor | None,
    ) -> tf.Tensor:
        """Returns outputs [rows, R, 2, K, ..., P] as [rows, S, ..., P].

        Draws are by round, by sign, by member, so blocks of rounds can be concatenated.
        """
        ones = [1] * (len(outputs.shape) - 5)
        member = tf.reshape(tf.range(self.members), [-1, *ones])
        outputs = likelihood.of_members(outputs, member)
        outputs = self.recalibration.outputs(likelihood, outputs)
        if location_variance is not None:
            outputs = likelihood.with_location_variance(outputs, location_variance)
        rows, _, _, _, *event = dimensions(outputs, 0)
        return tf.reshape(outputs, [rows, -1, *event])

    def _event_shape(
        self, likelihood: Likelihood, shape: tf.TensorShape
    ) -> tf.TensorShape:
        example = tf.zeros([1, *(size or 1 for size in shape[1:])])
        outputs = likelihood.of_members(example, 0)
        outputs = self.recalibration.outputs(likelihood, outputs)
        integrated = self.plan.num_integrated
        if integrated:
            variance = example[..., :integrated]
            outputs = likelihood.with_location_variance(outputs, variance)
        if self.num_beyond:
            further = example[..., : self.num_beyond]
            outputs = likelihood.with_further_location(outputs, further)
        return tf.TensorShape([*shape[1:-1], outputs.shape[-1]])


def _at_state(likelihood: Likelihood, state: State) -> Likelihood:
    """Returns the frozen likelihood with these values of its variables."""
    with keras.StatelessScope(state_mapping=state):
        return likelihood.frozen()


def _with_values(
    variables: Sequence[keras.Variable], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns a function whose first argument is the values of the variables."""

    def pure(values: Sequence[tf.Tensor], *arguments: Any) -> Any:
        state = zip(variables, values, strict=True)
        with keras.StatelessScope(state_mapping=state):
            return function(*arguments)

    return pure


def _key(likelihood: Likelihood, structure: Structure) -> int | tuple[type, str, str]:
    if id(likelihood) in structure.indices:
        return id(likelihood)
    # Equal likelihoods share a program, which copies the likelihood.
    config = {**likelihood.get_config(), "name": None}
    return type(likelihood), repr(config), repr(likelihood.get_weights())


def _copy(likelihood: Likelihood, output_shape: Shape) -> Likelihood:
    copy = type(likelihood).from_config(likelihood.get_config())
    copy.build(tuple(output_shape))
    if likelihood.built:
        copy.set_weights(likelihood.get_weights())
    return copy


def _rows_unknown(tensor: Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)


def _reader(variables: Sequence[Sequence[keras.Variable]]) -> Callable[[], Snapshot]:
    """Returns a function that takes a snapshot of lists of variables.

    One call of TensorFlow reads them all: a call for each takes several times as long.
    """

    def read() -> list[list[tf.Tensor]]:
        return [[_read(variable) for variable in part] for part in variables]

    if any(_is_distributed(variable) for part in variables for variable in part):
        return lambda: Snapshot(read())
    call = compiled_if_repeated(read, lambda: traced(read))
    return lambda: Snapshot(call())


def _read(variable: keras.Variable) -> tf.Tensor:
    if _is_distributed(variable):
        return tf.convert_to_tensor(variable)
    # Without the checks of a variable, which take longer than the reading.
    resource = variable.value
    return tf.raw_ops.ReadVariableOp(resource=resource.handle, dtype=resource.dtype)


def _is_distributed(variable: keras.Variable) -> bool:
    """Whether there is one variable for each device of a strategy."""
    return hasattr(variable.value, "values")
