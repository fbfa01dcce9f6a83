"""Chooses what a spec leaves open: the network, the members and the training."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from keras.optimizers.schedules import CosineDecay, LearningRateSchedule

from tfbbb.base.types import Config
from tfbbb.tables import Schema
from tfbbb.training.effort import (
    Defaults,
    defaults_for,
    suits_few_rows,
    usual_batch_size,
)
from tfbbb.training.spec import JobSpec, ModelSpec, SpecError
from tfbbb.training.spec.families import (
    DEFAULT_LIKELIHOODS,
    KLSchedulePart,
    kl_schedules,
)
from tfbbb.training.spec.model import NumericEncoding
from tfbbb.training.target_likelihood import LikelihoodChoice, default_likelihood

_REPEATS = 2
_FEWEST_EPOCHS = 3
# Fewer rows per column cannot determine a curve for each column.
_ROWS_PER_ENCODED_COLUMN = 10
_MOST_ENCODED_COLUMNS = 200
# Of a training: with less time for each, fewer networks are tried, the most promising
# first; with less in all, one temperature.
_SECONDS_PER_NETWORK, _SECONDS_OF_TEMPERATURES = 40.0, 20.0
_SAFE_TEMPERATURE = 0.1


@dataclass(frozen=True)
class TrainingPlan:
    """A spec without open choices, for a table.

    The networks, by what tells them apart, have no members yet; the `linear` one is
    tried where a linear model predicts rows left out about as well. The temperatures
    are relative to the schedule, and `group_size` members have the same one. Each row
    is left out `repeats` times per temperature, 0 if some rows are held out from all
    members.
    """

    networks: Mapping[str, ModelSpec]
    schedule: KLSchedulePart
    temperatures: tuple[float, ...]
    group_size: int
    repeats: int
    epochs: int
    batch_size: int
    steps_per_epoch: int
    learning_rate: float
    defaults: Defaults
    linear: ModelSpec | None = None

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
        defaults = defaults_for(spec, num_rows)
        temperatures: tuple[float, ...] = (1.0,)
        if training.kl_schedule is None and _may_temper(spec):
            temperatures = defaults.temperatures
            if (training.max_seconds or inf) < _SECONDS_OF_TEMPERATURES:
                temperatures = (_SAFE_TEMPERATURE,)
        batch_size = training.batch_size or usual_batch_size(num_training_rows)
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
        networks = _networks(spec, schema, targets, repeats, num_rows, likelihood)
        linear = None
        if _compares(spec, repeats, num_rows):
            linear = _linear(spec, next(iter(networks.values())))
        return cls(
            networks=networks,
            linear=linear,
            schedule=training.kl_schedule or kl_schedules.make("constant"),
            temperatures=temperatures,
            group_size=group_size(spec, num_rows),
            repeats=repeats,
            epochs=epochs,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            learning_rate=training.learning_rate or defaults.learning_rate,
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
        return replace(
            self,
            epochs=ceil(self.defaults.after_trial * self.epochs),
            learning_rate=self.defaults.rate_after_trial * self.learning_rate,
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
    def keras_learning_rate(self) -> LearningRateSchedule:
        """The learning rate as a schedule of Keras."""
        return CosineDecay(self.learning_rate, self.steps)


def kl_schedule_at(temperature: float) -> KLSchedulePart:
    """Returns the schedule with a constant temperature."""
    if temperature == 1.0:
        return kl_schedules.make("constant")
    return kl_schedules.make("tempered", temperature=temperature)


def cross_fitting_repeats(spec: JobSpec, num_rows: int) -> int:
    """Returns how often each row is left out; 0 if rows are held out instead."""
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
    return defaults_for(spec, num_rows).group_size


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
    defaults = defaults_for(spec, num_rows)
    update: Config = {}
    if model.hidden_units is None:
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
        if not (compares and columns):
            encodings.remove("standardized")
    networks: dict[str, ModelSpec] = {
        encoding: model.model_copy(update={"numeric_encoding": encoding})
        for encoding in encodings
    }
    in_time = (spec.training.max_seconds or inf) / _SECONDS_PER_NETWORK
    number = int(max(1.0, min(in_time, defaults.most_networks)))
    # Curves suit most tables.
    return {name: networks[name] for name in encodings[-number:]}


def _compares(spec: JobSpec, repeats: int, num_rows: int) -> bool:
    """Returns whether rows left out choose among networks."""
    return _may_temper(spec) and (repeats > 0 or not suits_few_rows(num_rows))


def _linear(spec: JobSpec, network: ModelSpec) -> ModelSpec | None:
    """Returns a linear network, unless the spec gives hidden layers."""
    if spec.model.hidden_units is not None:
        return None
    update: Config = {"hidden_units": ()}
    if spec.model.numeric_encoding is None:
        update["numeric_encoding"] = "standardized"
    return network.model_copy(update=update)


def _may_temper(spec: JobSpec) -> bool:
    """Whether a network has the posterior and prior that the recipe is measured for."""
    model = spec.model
    return (
        spec.start_from is None
        and model.posterior.name == "mean_field_normal"
        and model.prior.name == "normal"
    )
