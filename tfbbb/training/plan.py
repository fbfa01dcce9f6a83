"""Chooses what a spec leaves open: the network, the members and the training."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any

import keras
import numpy as np

from tfbbb.base.types import Config
from tfbbb.tables import Schema
from tfbbb.training.spec import JobSpec, ModelSpec, SpecError
from tfbbb.training.spec.families import (
    DEFAULT_LIKELIHOODS,
    KLSchedulePart,
    kl_schedules,
    priors,
)
from tfbbb.training.spec.layers import DenseLayer
from tfbbb.training.spec.model import NumericEncoding
from tfbbb.training.spec.training import Effort, LearningRate
from tfbbb.training.target_likelihood import LikelihoodChoice, default_likelihood

# From so many on, a tenth of the rows measures well enough, and costs less.
FEWEST_ROWS_TO_HOLD_OUT = 5_000
_REPEATS = 2
_FEWEST_EPOCHS = 3
# Fewer rows per column cannot determine a curve for each column.
_ROWS_PER_ENCODED_COLUMN = 10
_MOST_ENCODED_COLUMNS = 200
# Of a training: with less time for each, fewer networks are tried, the most promising
# first; with less in all, one temperature.
_SECONDS_PER_NETWORK, _SECONDS_OF_TEMPERATURES = 40.0, 20.0
_SAFE_TEMPERATURE = 0.1
# The linear network of many inputs, which is always tried.
SPARSE = "linear, horseshoe prior"


@dataclass(frozen=True)
class _Defaults:
    """What suits an effort and a number of rows; the most promising networks first."""

    hidden_units: tuple[int, ...]
    temperatures: tuple[float, ...]
    group_size: int
    steps: int
    learning_rate: float
    most_networks: int = 3
    # Of the steps and the learning rate.
    trial: float = 1.0
    after_trial: float = 0.5
    rate_after_trial: float = 0.25


_MANY_ROWS = _Defaults(
    (128, 128),
    (0.1, 0.01),
    4,
    3500,
    0.01,
    trial=0.4,
    after_trial=0.6,
    rate_after_trial=0.5,
)

# By effort, for few rows and for many.
_DEFAULTS: Mapping[Effort, tuple[_Defaults, _Defaults]] = {
    "quick": (
        _Defaults((64, 64), (0.1,), 8, 400, 0.02, most_networks=1),
        _Defaults((128, 128), (0.1,), 4, 1000, 0.01, most_networks=1),
    ),
    "default": (
        _Defaults((64, 64), (0.3, 0.1, 0.01), 8, 1000, 0.02),
        _MANY_ROWS,
    ),
    "best": (
        _Defaults((64, 64), (0.3, 0.1, 0.01), 16, 1500, 0.02),
        replace(_MANY_ROWS, group_size=8),
    ),
}


@dataclass(frozen=True)
class TrainingPlan:
    """A spec without open choices, for a table.

    The networks, by what tells them apart, have no members yet; a `simpler` one is
    tried where a linear model predicts rows left out about as well, or where the inputs
    are many. The temperatures are relative to the schedule, and `group_size` members
    have the same one. Each row is left out `repeats` times per temperature, 0 if some
    rows are held out from all members.
    """

    networks: Mapping[str, ModelSpec]
    schedule: KLSchedulePart
    temperatures: tuple[float, ...]
    group_size: int
    repeats: int
    epochs: int
    batch_size: int
    steps_per_epoch: int
    learning_rate: LearningRate
    defaults: _Defaults
    simpler: Mapping[str, ModelSpec] = field(default_factory=dict)

    @classmethod
    def from_spec(
        cls,
        spec: JobSpec,
        schema: Schema,
        targets: np.ndarray,
        repeats: int,
        likelihood: LikelihoodChoice | None = None,
        *,
        num_rows: int | None = None,
    ) -> "TrainingPlan":
        """Completes a spec for a table."""
        training, num_training_rows = spec.training, len(targets)
        num_rows = num_training_rows if num_rows is None else num_rows
        defaults = _defaults(spec, num_rows)
        temperatures: tuple[float, ...] = (1.0,)
        if training.kl_schedule is None and _may_temper(spec):
            temperatures = defaults.temperatures
            if _seconds(spec) < _SECONDS_OF_TEMPERATURES:
                temperatures = (_SAFE_TEMPERATURE,)
        batch_size = training.batch_size or _batch_size(num_training_rows)
        steps_per_epoch = ceil(num_training_rows / batch_size)
        fewest = max(_FEWEST_EPOCHS, ceil(2 * training.warmup_epochs))
        epochs = training.epochs or (
            ceil(training.steps / steps_per_epoch)
            if training.steps
            else max(fewest, ceil(defaults.steps / steps_per_epoch))
        )
        try:
            training.check_warmup(epochs)
        except ValueError as error:
            raise SpecError(f"Training would end too soon: {error}.") from None
        rate = training.learning_rate
        if rate.initial is None:
            rate = rate.model_copy(update={"initial": defaults.learning_rate})
        networks = _networks(spec, schema, targets, repeats, num_rows, likelihood)
        simpler: dict[str, ModelSpec] = {}
        if _compares(spec, repeats, num_rows):
            first = next(iter(networks.values()))
            simpler = _simpler(spec, schema, first, num_training_rows)
        return cls(
            networks=networks,
            simpler=simpler,
            schedule=training.kl_schedule or kl_schedules.make("constant"),
            temperatures=temperatures,
            group_size=group_size(spec, num_rows),
            repeats=repeats,
            epochs=epochs,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            learning_rate=rate,
            defaults=defaults,
        )

    @property
    def trial(self) -> "TrainingPlan":
        """The plan of the members of all temperatures, before one is chosen."""
        if len(self.temperatures) == 1:
            return self
        return replace(self, epochs=ceil(self.defaults.trial * self.epochs))

    @property
    def after_trial(self) -> "TrainingPlan":
        """The plan of the members of the best temperature, after the trial."""
        rate, defaults = self.learning_rate, self.defaults
        assert rate.initial is not None
        initial = defaults.rate_after_trial * rate.initial
        return replace(
            self,
            epochs=ceil(defaults.after_trial * self.epochs),
            learning_rate=rate.model_copy(update={"initial": initial}),
        )

    @property
    def steps(self) -> int:
        """Number of steps of the training of one network."""
        return self.epochs * self.steps_per_epoch

    @property
    def temperature(self) -> float:
        """The temperature of the schedule, after any warm-up."""
        return getattr(self.schedule, "temperature", 1.0)

    @property
    def num_members(self) -> int:
        """Number of members of all temperatures."""
        return len(self.temperatures) * self.group_size

    @property
    def keras_learning_rate(self) -> Any:
        """The learning rate as a number or a schedule of Keras."""
        schedules, initial = keras.optimizers.schedules, self.learning_rate.initial
        if self.learning_rate.decay == "cosine":
            return schedules.CosineDecay(initial, self.steps)
        if self.learning_rate.decay == "linear":
            return schedules.PolynomialDecay(initial, self.steps, 0.0)
        return initial


def kl_schedule_at(temperature: float) -> KLSchedulePart:
    """Returns the schedule with a constant temperature."""
    if temperature == 1.0:
        return kl_schedules.make("constant")
    return kl_schedules.make("tempered", temperature=temperature)


def cross_fitting_repeats(spec: JobSpec, num_rows: int) -> int:
    """Returns how often each row is left out; 0 if rows are held out instead.

    Rows are held out if the spec says which or how many, if training stops by them, and
    if the table has many rows.
    """
    training = spec.training
    validation = training.validation
    if (
        spec.start_from is not None
        or training.early_stopping is not None
        or validation.fraction is not None
        or validation.column is not None
        or not suits_few_rows(num_rows)
    ):
        return 0
    size = group_size(spec, num_rows)
    if size >= 2 * _REPEATS and size % _REPEATS == 0:
        return _REPEATS
    return 1 if size >= 3 else 0


def cross_fitting_folds(spec: JobSpec, num_rows: int) -> int:
    """Returns the number of folds of a repeat; 0 if rows are held out instead."""
    repeats = cross_fitting_repeats(spec, num_rows)
    return group_size(spec, num_rows) // repeats if repeats else 0


def group_size(spec: JobSpec, num_rows: int) -> int:
    """Returns the number of members with the same temperature."""
    if spec.model.members is not None:
        return spec.model.members
    if not _may_temper(spec):
        return 1
    return _defaults(spec, num_rows).group_size


def _networks(
    spec: JobSpec,
    schema: Schema,
    targets: np.ndarray,
    repeats: int,
    num_rows: int,
    choice: LikelihoodChoice | None,
) -> dict[str, ModelSpec]:
    """Returns the networks to try, with all choices made, apart from their members.

    Encoded numbers suit functions with steps and bends, standardised ones smooth ones.
    """
    model, num_training_rows = spec.model, len(targets)
    defaults = _defaults(spec, num_rows)
    update: Config = {}
    if _chooses_layers(spec):
        update["hidden_units"] = defaults.hidden_units
    if model.likelihood is None:
        likelihood = DEFAULT_LIKELIHOODS[schema.task]
        if schema.task == "regression":
            likelihood = default_likelihood(targets)
        update["likelihood"] = likelihood if choice is None else choice.likelihood
    model = model.model_copy(update=update)
    compares = _compares(spec, repeats, num_rows)
    columns = sum(column.kind == "numeric" for column in schema.features)
    encodings: list[NumericEncoding] = ["standardized"]
    if model.numeric_encoding is not None:
        encodings = [model.numeric_encoding]
    elif columns * _ROWS_PER_ENCODED_COLUMN <= num_training_rows and (
        columns <= _MOST_ENCODED_COLUMNS
    ):
        encodings.append("piecewise_linear")
        if suits_few_rows(num_rows) or not (compares and columns):
            encodings.remove("standardized")
    networks: dict[str, ModelSpec] = {
        encoding: model.model_copy(update={"numeric_encoding": encoding})
        for encoding in encodings
    }
    in_time = _seconds(spec) / _SECONDS_PER_NETWORK
    number = int(max(1.0, min(in_time, defaults.most_networks)))
    # Curves suit most tables.
    return {name: networks[name] for name in encodings[-number:]}


def _compares(spec: JobSpec, repeats: int, num_rows: int) -> bool:
    """Returns whether rows left out choose among networks."""
    return _may_temper(spec) and (repeats > 0 or not suits_few_rows(num_rows))


def _chooses_layers(spec: JobSpec) -> bool:
    return spec.model.hidden_units is None and spec.model.layers is None


def _simpler(
    spec: JobSpec, schema: Schema, network: ModelSpec, num_training_rows: int
) -> dict[str, ModelSpec]:
    """Returns a linear network, unless the spec gives layers.

    Of many more inputs than rows, few may matter: its prior is then a horseshoe.
    """
    if not _chooses_layers(spec):
        return {}
    inputs = sum(
        len(column.categories) + column.buckets or 1 for column in schema.features
    )
    if inputs * _ROWS_PER_ENCODED_COLUMN > num_training_rows:
        sparse = {"hidden_units": (), "prior": priors.make("horseshoe")}
        return {SPARSE: network.model_copy(update=sparse)}
    update: Config = {"hidden_units": ()}
    if spec.model.numeric_encoding is None:
        update["numeric_encoding"] = "standardized"
    return {"linear": network.model_copy(update=update)}


def _seconds(spec: JobSpec) -> float:
    seconds = spec.training.max_seconds
    return inf if seconds is None else seconds


def _may_temper(spec: JobSpec) -> bool:
    """Returns whether the recipe's members suit the network of a spec.

    They were measured for the default posterior and prior. Others are trained as they
    are.
    """
    model = spec.model
    if spec.start_from is not None or model.shares_layers:
        return False
    layers = model.complete_layers(1)
    dense = [layer for layer in layers if isinstance(layer, DenseLayer)]
    return all(
        layer.posterior is not None
        and layer.posterior.name == "mean_field_normal"
        and layer.prior is not None
        and layer.prior.name == "normal"
        and layer.estimator is not None
        and layer.estimator.name in ("auto", "local")
        for layer in dense
    )


def suits_few_rows(num_rows: int) -> bool:
    """Returns whether a table gets the recipe of few rows."""
    return num_rows < FEWEST_ROWS_TO_HOLD_OUT


def _defaults(spec: JobSpec, num_rows: int) -> _Defaults:
    few, many = _DEFAULTS[spec.training.effort]
    return few if suits_few_rows(num_rows) else many


def _batch_size(num_rows: int) -> int:
    """Returns 64 to 256 rows, and more for more than 100 000 rows, up to 1024.

    A step of many small members costs a third more for 64 rows than for 32, and goes
    twice as far.
    """
    small = 2 ** int(np.log2(max(num_rows, 1) / 40)) if num_rows >= 40 else 1
    large = 2 ** int(np.log2(max(num_rows, 400) / 400))
    return max(min(max(small, 64), 256), min(large, 1024))
