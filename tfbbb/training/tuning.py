"""Searches for a spec by a study of Optuna, and trains the best one."""

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from tfbbb.training.job_clock import Progress
from tfbbb.training.spec import JobSpec, SpecError
from tfbbb.training.spec.model import NumericEncoding
from tfbbb.training.spec.training import Validation
from tfbbb.training.split import find_rows_with_target, infer_schema, split_rows
from tfbbb.training.table import train_table
from tfbbb.training.trained_table import TrainedTable

if TYPE_CHECKING:
    import optuna

__all__ = ["StudyError", "TunedTable", "tune"]

# Suggests fields of a spec, by the methods `suggest_...` of an Optuna trial.
Space: TypeAlias = Callable[["optuna.Trial"], Config]

# The first trials are drawn at random; the later ones learn from them.
_AT_RANDOM = 8


class StudyError(ValueError):
    """A storage cannot be used; the message is one sentence."""


@dataclass(frozen=True)
class TunedTable:
    """The model of the best trial.

    Attributes:
        trained: The best spec, trained on all training rows; its metrics are those by
            which it was chosen, so they are somewhat too good.
        trials: The trials that have ended, as Optuna has them, by number. Their
            `user_attrs` have the `fields` of the spec that differ from the default,
            the `log_likelihoods` of held-out rows, and the `error` of one that failed.
        default: The trial of the spec as it was given.
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
    storage: str | None = None,
    space: Space | None = None,
    finished: "Callable[[optuna.trial.FrozenTrial], object]" = lambda trial: None,
    report: Callable[[Progress], object] = lambda progress: None,
) -> TunedTable:
    """Searches for a spec of a table, and trains the best one.

    The rows that the `validation` of the spec names, by default a tenth of the rows at
    random, are test rows: no trial and no choice sees them. Each trial trains another
    spec on the other rows, as `train_table` does, and has the log-likelihood of rows
    that its members left out. One trial, the first, is the spec as it is, so the best
    trial is at least as good as the default on these rows. Optuna's tree-structured
    Parzen estimator (Bergstra et al. 2011) suggests the others.

    Without a storage, the seed of the spec decides the trials. Several processes that
    call this with one storage share its trials.

    Args:
        table: Features and target, as for `train_table`; held in memory.
        spec: The spec, or its fields as a mapping. Its own fields are not searched.
        trials: Number of trials, with the default.
        storage: URL of the database that keeps the trials, as Optuna takes it, such as
            `"sqlite:///houses.db"`. A table and a spec have a study of their own there:
            the same call goes on with it. None keeps nothing.
        space: A function of an Optuna trial that returns fields of the spec, instead
            of those that are searched, such as
            `lambda trial: {"model": {"members": trial.suggest_int("members", 4, 16)}}`.
        finished: Called with each trial that has ended, those of the storage first.
        report: Called with the progress of the final training.

    Raises:
        ValueError: `trials` is not a positive integer.
        ImportError: Optuna is not installed.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table, or starts from a version. An error
            of another trial than the default is recorded, and ends nothing.
        StudyError: The storage cannot be opened.
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
    import_extra("tune", "optuna")
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
    with _quiet_optuna():
        study = _open_study(storage, given, rows, test)
        suggest = space or partial(_suggest, given)
        train = partial(_train, spec=given, rows=rows, test=test, space=suggest)
        ended = _run(study, train, trials, finished)
    default = next(trial for trial in ended if _is_default(trial))
    # Of equal ones, and if none is complete, the default.
    best = max((default, *ended), key=_value)
    fields = best.user_attrs["fields"]
    trained = train_table(rows, with_fields(given, fields), report=report)
    return TunedTable(
        trained,
        ended,
        default,
        best,
        _score_rows(trained, test),
        np.asarray(default.user_attrs.get("test", ()), np.float32),
    )


def held_out(trial: "optuna.trial.FrozenTrial") -> np.ndarray:
    """Returns the log-likelihood of each held-out row; empty unless complete."""
    return np.asarray(trial.user_attrs.get("log_likelihoods", ()), np.float32)


def _run(
    study: "optuna.Study",
    train: "Callable[[optuna.Trial], float]",
    number: int,
    finished: "Callable[[optuna.trial.FrozenTrial], object]",
) -> "list[optuna.trial.FrozenTrial]":
    """Runs trials until so many have ended, and the default among them."""
    shown: set[int] = set()
    while True:
        ended = list(filter(_has_ended, study.get_trials(deepcopy=False)))
        for trial in ended:
            if trial.number not in shown:
                finished(trial)
        shown |= {trial.number for trial in ended}
        has_default = any(map(_is_default, ended))
        if has_default and len(ended) >= number:
            return ended
        if not has_default:
            study.enqueue_trial({}, {"default": True})
        study.optimize(train, n_trials=1)


def _train(
    trial: "optuna.Trial", spec: JobSpec, rows: pa.Table, test: pa.Table, space: Space
) -> float:
    """Returns the mean log-likelihood of rows left out; NaN after an error."""
    is_default = _is_default(trial)
    fields: Config = {} if is_default else space(trial)
    trial.set_user_attr("fields", fields)
    try:
        trained = train_table(rows, with_fields(spec, fields))
    except TrainingDivergedError:
        trial.set_user_attr("error", "diverged")
        return math.nan
    except Exception as error:
        if is_default:
            # No other trial could train this table, either.
            raise
        trial.set_user_attr("error", f"{type(error).__name__}: {error}")
        return math.nan
    found = trained.log_likelihoods.astype(np.float32)
    trial.set_user_attr("log_likelihoods", found.tolist())
    if is_default:
        trial.set_user_attr("test", _score_rows(trained, test).tolist())
    return float(np.mean(found, dtype=np.float64))


def _suggest(spec: JobSpec, trial: "optuna.Trial") -> Config:
    """Suggests the fields that a spec leaves to the recipe.

    Temperatures, members and, unless the spec sets it, the likelihood are chosen within
    each trial, as in every training.
    """
    model: Config = {}
    training: Config = {}
    if spec.model.layers is None:
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
    if spec.training.learning_rate.initial is None:
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


def _is_default(trial: "optuna.Trial | optuna.trial.FrozenTrial") -> bool:
    return "default" in trial.user_attrs


def _has_ended(trial: "optuna.trial.FrozenTrial") -> bool:
    """Whether a trial has a result: one that was interrupted has none."""
    return trial.state.name == "COMPLETE" or "error" in trial.user_attrs


def _value(trial: "optuna.trial.FrozenTrial") -> float:
    complete = trial.state.name == "COMPLETE"
    return -math.inf if trial.value is None or not complete else trial.value


def _open_study(
    storage: str | None, spec: JobSpec, rows: pa.Table, test: pa.Table
) -> "optuna.Study":
    """Returns the study of a table and a spec."""
    (optuna,) = import_extra("tune", "optuna")
    # With a storage, a process must not repeat the draws of another one.
    seed = spec.training.seed if storage is None else None
    try:
        return optuna.create_study(
            storage=storage,
            study_name=f"tfbbb-{_digest(spec, rows, test)}",
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=_AT_RANDOM),
            pruner=optuna.pruners.NopPruner(),
            direction="maximize",
            load_if_exists=True,
        )
    except Exception as error:
        raise StudyError(
            "The storage cannot be opened: give the URL of a database, such as "
            f"sqlite:///houses.db. Received: {storage!r} ({type(error).__name__})"
        ) from error


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keeps Optuna from logging each study and trial on stderr."""
    (optuna,) = import_extra("tune", "optuna")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


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
    """Returns the spec for the rows that are left without the test rows.

    Trials hold out rows, or leave out folds, in the way that test rows were held out:
    in time, or by groups.
    """
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


def _digest(spec: JobSpec, *tables: pa.Table) -> str:
    """Returns the start of a digest of a spec and the rows of tables."""
    found = hashlib.sha256(spec.model_dump_json().encode())
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        found.update(sink.getvalue())
    return found.hexdigest()[:16]


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
