"""Searches for a spec by a study of Optuna, and trains the best one."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.extras import import_extra
from tfbbb.base.numbers import positive_integer
from tfbbb.base.row_weights import mean_and_error
from tfbbb.base.types import Config, TableLike
from tfbbb.tables.given_table import as_source
from tfbbb.training.spec import JobSpec, SpecError
from tfbbb.training.spec.model import NumericEncoding
from tfbbb.training.spec.training import Validation
from tfbbb.training.split import find_rows_with_target, infer_schema, split_rows
from tfbbb.training.table import train_table
from tfbbb.training.trained_table import TrainedTable

if TYPE_CHECKING:
    import optuna

__all__ = ["TunedTable", "tune"]

# Suggests fields of a spec, by the methods `suggest_...` of an Optuna trial.
Space: TypeAlias = Callable[["optuna.Trial"], Config]

# The first trials are drawn at random; the later ones learn from them.
_AT_RANDOM = 8


@dataclass(frozen=True)
class TunedTable:
    """The model of the best trial.

    Attributes:
        trained: The best spec, trained on all training rows; its metrics are those by
            which it was chosen, so they are somewhat too good.
        trials: The trials, as Optuna has them. Their `user_attrs` have the `fields` of
            the spec that differ from the default, the `log_likelihoods` of held-out
            rows, and the `error` of one that failed.
        default: The first trial, of the spec as it was given.
        best: The trial with the greatest mean log-likelihood of held-out rows.
        test: Log-likelihood of each test row by the model, [m]. No trial and no choice
            has seen these rows.
        test_of_default: The same by the default; empty if it diverged.
    """

    trained: TrainedTable
    trials: "Sequence[optuna.trial.FrozenTrial]"
    default: "optuna.trial.FrozenTrial"
    best: "optuna.trial.FrozenTrial"
    test: np.ndarray
    test_of_default: np.ndarray

    def describe(self) -> Config:
        """Returns what was tried, as plain JSON values."""
        compared = len(self.test_of_default) > 0
        gains = self.test - self.test_of_default if compared else self.test_of_default
        return {
            "trials": list(map(_described, self.trials)),
            "default": self.default.number,
            "best": self.best.number,
            "test": {
                **_figures("tuned", self.test),
                **_figures("default", self.test_of_default),
                **_figures("gain", gains),
            },
            "test_rows": len(self.test),
        }

    def export(self, root: str | os.PathLike[str], **options: Any) -> Path:
        """Writes the next version of the model under a directory; returns its path.

        The lineage in its manifest has `describe()` as `tuning`.

        Args:
            root: Directory of the model.
            **options: `format` and its options, as for `TrainedTable.export`.
        """
        lineage = {"tuning": self.describe()}
        return self.trained.export(root, lineage=lineage, **options)


def tune(
    table: TableLike,
    spec: JobSpec | Mapping[str, Any],
    *,
    trials: int = 20,
    space: Space | None = None,
    finished: "Callable[[optuna.trial.FrozenTrial], object]" = lambda trial: None,
) -> TunedTable:
    """Searches for a spec of a table, and trains the best one.

    The rows that the `validation` of the spec names, by default a tenth of the rows at
    random, are test rows: no trial and no choice sees them. Each trial trains another
    spec on the other rows, as `train_table` does, and has the log-likelihood of rows
    that its members left out. The first is the spec as it is, so the best trial is at
    least as good as the default on these rows. Optuna's tree-structured Parzen
    estimator (Bergstra et al. 2011) suggests the others, by the seed of the spec.

    Args:
        table: Features and target, as for `train_table`; held in memory.
        spec: The spec, or its fields as a mapping. Its own fields are not searched.
        trials: Number of trials, with the default.
        space: A function of an Optuna trial that returns fields of the spec, instead
            of those that are searched, such as
            `lambda trial: {"model": {"members": trial.suggest_int("members", 4, 16)}}`.
        finished: Called with each trial that has ended.

    Raises:
        ValueError: `trials` is not a positive integer.
        ImportError: Optuna is not installed.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table, or starts from a version. An error
            of another trial than the default is recorded, and ends nothing.
        TrainingDivergedError: The default diverged, and no other trial was complete.

    Example:

    >>> from tfbbb.tables import samples
    >>> from tfbbb.training.tuning import tune
    >>> spec = {
    ...     "target": "progression",
    ...     "features": ["bmi", "bp"],
    ...     "model": {"hidden_units": [], "members": 1, "likelihood": "normal"},
    ...     "training": {"steps": 1, "kl_schedule": "constant"},
    ... }
    >>> tuned = tune(samples.diabetes(), spec, trials=2)
    >>> tuned.best.value >= tuned.default.value
    True
    >>> len(tuned.test), tuned.trained.num_training_rows
    (44, 358)
    """
    positive_integer("trials", trials)
    (library,) = import_extra("tune", "optuna")
    if isinstance(spec, Mapping):
        spec = JobSpec.model_validate(spec)
    if spec.start_from is not None:
        raise SpecError(
            "A search tries other networks, but a model that starts from a version has "
            "the network of this version: leave out `start_from`. "
            f"Received: start_from={spec.start_from.model_dump()}"
        )
    rows, test = _split(as_source(table), spec)
    given = _spec_of_trials(spec)
    suggest = space or partial(_suggest, given)
    of_default = np.zeros(0, np.float32)

    def train(trial: "optuna.Trial") -> float:
        nonlocal of_default
        fields: Config = suggest(trial) if trial.number else {}
        trial.set_user_attr("fields", fields)
        try:
            trained = train_table(rows, with_fields(given, fields))
        except TrainingDivergedError:
            trial.set_user_attr("error", "diverged")
            return math.nan
        except Exception as error:
            if not trial.number:
                # No other trial could train this table, either.
                raise
            trial.set_user_attr("error", f"{type(error).__name__}: {error}")
            return math.nan
        found = trained.log_likelihoods.astype(np.float32)
        trial.set_user_attr("log_likelihoods", found.tolist())
        if not trial.number:
            of_default = _score_rows(trained, test)
        return float(np.mean(found, dtype=np.float64))

    level = library.logging.get_verbosity()
    library.logging.set_verbosity(library.logging.ERROR)
    try:
        sampler = library.samplers.TPESampler(
            seed=spec.training.seed, n_startup_trials=_AT_RANDOM
        )
        study = library.create_study(sampler=sampler, direction="maximize")
        study.optimize(train, trials, callbacks=[lambda _, trial: finished(trial)])
    finally:
        library.logging.set_verbosity(level)
    ended = study.get_trials(deepcopy=False)
    # Of equal ones, and if none is complete, the default.
    best = max(ended, key=_value)
    fields = best.user_attrs["fields"]
    trained = train_table(rows, with_fields(given, fields))
    scores = _score_rows(trained, test)
    return TunedTable(trained, ended, ended[0], best, scores, of_default)


def held_out(trial: "optuna.trial.FrozenTrial") -> np.ndarray:
    """Returns the log-likelihood of each held-out row; empty unless complete."""
    return np.asarray(trial.user_attrs.get("log_likelihoods", ()), np.float32)


def _suggest(spec: JobSpec, trial: "optuna.Trial") -> Config:
    """Suggests the fields that a spec leaves open and no trial chooses itself."""
    model: Config = {}
    training: Config = {}
    if spec.model.hidden_units is None:
        depth = trial.suggest_int("layers", 1, 3)
        units = trial.suggest_categorical("units", [32, 64, 128])
        model["hidden_units"] = [units] * depth
    if "activation" not in spec.model.model_fields_set:
        activations = ["relu", "silu", "tanh"]
        model["activation"] = trial.suggest_categorical("activation", activations)
    if spec.model.numeric_encoding is None:
        encodings = get_args(NumericEncoding)
        model["numeric_encoding"] = trial.suggest_categorical("encoding", encodings)
    if spec.training.learning_rate is None:
        rate = trial.suggest_float("learning_rate", 0.002, 0.06, log=True)
        training["learning_rate"] = rate
    if spec.training.batch_size is None:
        sizes = [32, 64, 128, 256]
        training["batch_size"] = trial.suggest_categorical("batch_size", sizes)
    if spec.training.epochs is None and spec.training.steps is None:
        numbers = [500, 1000, 2000, 4000]
        training["steps"] = trial.suggest_categorical("steps", numbers)
    return {"model": model, "training": training}


def with_fields(spec: JobSpec, fields: Config) -> JobSpec:
    """Returns a spec with other fields; parts such as `model` keep theirs."""
    given: Config = spec.model_dump(mode="json", exclude_unset=True)
    return JobSpec.model_validate(_merged(given, fields))


def _merged(given: Config, fields: Config) -> Config:
    merged = dict(given)
    for name, value in fields.items():
        inner = merged.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = _merged(dict(inner), dict(value))
        merged[name] = value
    return merged


def _value(trial: "optuna.trial.FrozenTrial") -> float:
    return -math.inf if trial.value is None else trial.value


def _split(source: pa.Table, spec: JobSpec) -> tuple[pa.Table, pa.Table]:
    """Returns the rows of the trials and the test rows, all with a target."""
    found = find_rows_with_target(source, spec)
    table = source.filter(pa.array(found.known))
    split = split_rows(table, infer_schema(table, spec, found.choices), spec)
    column = spec.training.validation.column
    if column is not None:
        # It has told test rows, and is no feature of the others.
        table = table.drop_columns([column])
    return table.take(np.sort(split.training)), table.take(np.sort(split.held_out))


def _spec_of_trials(spec: JobSpec) -> JobSpec:
    """Returns the spec of trials, which leave rows out as test rows were held out."""
    given = spec.training.validation
    fields: Config = {"time": given.time, "group": given.group}
    if given.time is not None:
        fields["fraction"] = given.fraction
    inner = Validation(**{k: v for k, v in fields.items() if v is not None})
    columns = {
        name: kind for name, kind in spec.columns.items() if name != given.column
    }
    training = spec.training.model_copy(update={"validation": inner})
    return spec.model_copy(update={"training": training, "columns": columns})


def _score_rows(trained: TrainedTable, table: pa.Table) -> np.ndarray:
    """Returns the log-likelihood of each row of a table by a trained model, [n]."""
    prediction = trained.model.predictive(trained.schema.inputs(table))
    found = prediction.log_prob(trained.schema.targets(table))
    return np.asarray(found, np.float32)


def _described(trial: "optuna.trial.FrozenTrial") -> Config:
    assert trial.duration is not None, "The trial has ended."
    found = {
        "number": trial.number,
        "state": trial.state.name.lower(),
        "params": dict(trial.params),
        "seconds": round(trial.duration.total_seconds(), 1),
        **_figures("held_out", held_out(trial)),
    }
    told = {key: trial.user_attrs.get(key) for key in ("fields", "error")}
    return found | {key: value for key, value in told.items() if value is not None}


def _figures(name: str, values: np.ndarray) -> dict[str, float | None]:
    """Returns a mean and its standard error, None where they are not known."""
    found = mean_and_error(values) if len(values) else (math.nan, math.nan)
    return {
        key: value if math.isfinite(value) else None
        for key, value in zip((name, f"{name}_standard_error"), found, strict=True)
    }
