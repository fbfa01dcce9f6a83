"""Searches for a spec, and trains the best one."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from tfbbb.base.extras import import_extra
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Config, TableLike
from tfbbb.tables.given_table import as_source
from tfbbb.training.parallel import call_each, places
from tfbbb.training.progress import Progress
from tfbbb.training.rows_with_target import find_rows_with_target, infer_schema
from tfbbb.training.spec import JobSpec, SpecError
from tfbbb.training.spec.training import Validation
from tfbbb.training.split import split_rows
from tfbbb.training.table import train_table
from tfbbb.training.trained_table import TrainedTable
from tfbbb.training.tuning.search_space import (
    SearchSpace,
    Space,
    with_fields,
)
from tfbbb.training.tuning.study import open_study
from tfbbb.training.tuning.trial import (
    Trial,
    quiet_optuna,
    run_trial,
    score_rows,
    standard_error,
)

if TYPE_CHECKING:
    import optuna

# The first trials are drawn at random; the later ones learn from them.
_AT_RANDOM = 8


@dataclass(frozen=True)
class TunedTable:
    """The model of the best trial.

    Attributes:
        trained: The best spec, trained on all training rows; its metrics are those by
            which it was chosen, so they are somewhat too good.
        trials: All trials, by number; the first one is the default.
        best: The trial with the greatest log-likelihood of held-out rows.
        test: Log-likelihood of each test row by the model, [m]. No trial and no choice
            has seen these rows.
    """

    trained: TrainedTable
    trials: Sequence[Trial]
    best: Trial
    test: np.ndarray

    @property
    def test_gain(self) -> tuple[float, float]:
        """By how much the model predicts the test rows better than the default.

        With the standard error of the difference, in nats per row; NaN if the default
        diverged.
        """
        default = self.trials[0]
        if default.state != "complete":
            return np.nan, np.nan
        differences = self.test - default.test
        mean = float(np.mean(differences, dtype=np.float64))
        return mean, standard_error(differences)

    def describe(self) -> Config:
        """Returns what was tried, as plain JSON values."""
        gain, gain_error = self.test_gain
        default = self.trials[0]
        return {
            "trials": [
                {
                    "number": trial.number,
                    "state": trial.state,
                    "params": dict(trial.params),
                    "fields": dict(trial.fields),
                    "seconds": round(trial.seconds, 1),
                    **({"error": trial.error} if trial.error else {}),
                    **_figures("held_out", trial.log_likelihoods),
                }
                for trial in self.trials
            ],
            "best": self.best.number,
            "test": {
                **_figures("tuned", self.test),
                **_figures("default", default.test),
                "gain": _plain(gain),
                "gain_standard_error": _plain(gain_error),
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
    study: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    ray_address: str | None = None,
    round_size: int = 4,
    space: Space | None = None,
    progress: str | None = None,
    finished: Callable[[Trial], object] = lambda trial: None,
    report: Callable[[Progress], object] = lambda progress: None,
) -> TunedTable:
    """Searches for a spec of a table, and trains the best one.

    The rows that the `validation` of the spec names, by default a tenth of the rows at
    random, are test rows: no trial and no choice sees them. Each trial trains another
    spec on the other rows, as `train_table` does, and has the log-likelihood of rows
    that its members left out. Trial 0 is the spec as it is, so the best trial is at
    least as good as the default on these rows. Optuna's tree-structured Parzen
    estimator (Bergstra et al. 2011) suggests the others, and its median rule stops a
    trial whose `val_nll` is worse than the median of earlier trials at the same share
    of their epochs.

    Trials run in rounds: those of a round know the trials of the rounds before, and
    nothing of each other. So the same seed gives the same trials, however many run at
    the same time, and after any interruption.

    Args:
        table: Features and target, as for `train_table`; held in memory.
        spec: The spec, or its fields as a mapping. Its own fields are not searched.
        trials: Number of trials, with the default.
        study: A file that keeps the finished trials. The same call goes on from there,
            and one with more trials adds to them. None keeps nothing.
        processes: Number of processes of this machine that train at the same time, by
            joblib, with one thread each; 1 is this process, with its threads. None
            leaves the choice to `joblib.parallel_config`, by default this process.
        ray_address: The Ray cluster that trains, in place of processes: `"local"` to
            start one, `"auto"` for that of this machine, or an address.
        round_size: Number of trials of a round, and so the most that run at the same
            time. The larger, the less each trial knows.
        space: A function of an Optuna trial that returns fields of the spec, instead
            of the search space around the default, such as
            `lambda trial: {"model": {"members": trial.suggest_int("members", 4, 16)}}`.
        progress: What the trials are called by a progress bar; None for no bar.
        finished: Called with each trial that has finished, those of `study` first.
        report: Called with the progress of the final training.

    Raises:
        ValueError: An argument is not a positive integer, or both `processes` and
            `ray_address` are given.
        ImportError: Optuna, or Ray for `ray_address`, is not installed.
        ConnectionError: No Ray cluster answers.
        TableError: The table cannot be used for training.
        SpecError: The spec does not fit the table, or starts from a version. An error
            of another trial than the default is recorded, and ends nothing.
        StudyError: The file has a study of another table or spec.
        BrokenProcessPool: A process died, of `concurrent.futures.process`.
        TrainingDivergedError: The default diverged, and no other trial was complete.

    Example:

    >>> from tfbbb.tables import samples
    >>> from tfbbb.training.tuning import tune
    >>> spec = {
    ...     "target": "progression",
    ...     "features": ["bmi", "bp"],
    ...     "model": {"hidden_units": [4], "members": 2, "likelihood": "normal"},
    ...     "training": {"steps": 10, "kl_schedule": "constant"},
    ... }
    >>> tuned = tune(samples.diabetes(), spec, trials=2)
    >>> tuned.best.log_likelihood >= tuned.trials[0].log_likelihood
    True
    >>> len(tuned.test), tuned.trained.num_training_rows
    (44, 358)
    """
    positive_integer("trials", trials)
    positive_integer("round_size", round_size)
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
    kept = open_study(
        study,
        {
            "table": _digest(rows, test),
            "spec": given.model_dump_json(),
            "round_size": round_size,
        },
    )
    schema = infer_schema(rows, given)
    around = SearchSpace.around(given, schema, schema.targets(rows))
    search = _Search(given, space or around, {} if space else around.default)
    known = map(Trial.from_optuna, kept.get_trials(deepcopy=False))
    found = {trial.number: trial for trial in known if trial.number < trials}
    with places(processes, ray_address), _bar(progress) as bar:
        task = bar.add_task(progress or "", total=trials)

        def show(trial: Trial) -> None:
            bar.advance(task)
            finished(trial)

        for number in sorted(found):
            show(found[number])
        for first in range(0, trials, round_size):
            earlier = [found[number] for number in range(first)]
            of_optuna = [trial.to_optuna() for trial in earlier]
            asked = [
                trial
                for trial in search.ask(of_optuna, first, round_size)
                if trial.number < trials and trial.number not in found
            ]
            arguments = [
                {
                    "table": rows,
                    "spec": _fields(with_fields(given, trial.fields)),
                    "earlier": of_optuna,
                    "test": None if trial.number else test,
                }
                for trial in asked
            ]
            for place, result in call_each(run_trial, arguments):
                trial = replace(asked[place], **result)
                kept.add_trial(trial.to_optuna(with_rows=True))
                found[trial.number] = trial
                show(trial)
    ordered = [found[number] for number in range(trials)]
    best = max(ordered, key=lambda trial: trial.log_likelihood)
    trained = train_table(
        rows, with_fields(given, best.fields), validate_left_out=True, report=report
    )
    return TunedTable(trained, ordered, best, score_rows(trained, test))


class _Search:
    """Suggests the trials of each round.

    Args:
        spec: The spec of the default.
        space: Suggests fields.
        default: The parameters of the default, as far as they are known.
    """

    def __init__(self, spec: JobSpec, space: Space, default: Config):
        self._spec = spec
        self._space = space
        self._default = default

    def ask(
        self, earlier: "Sequence[optuna.trial.FrozenTrial]", first: int, size: int
    ) -> list[Trial]:
        """Returns the trials of a round, without results."""
        (optuna,) = import_extra("tune", "optuna")
        seed = np.random.SeedSequence([self._spec.training.seed, first])
        with quiet_optuna():
            study = optuna.create_study(
                direction="maximize",
                sampler=optuna.samplers.TPESampler(
                    seed=int(seed.generate_state(1)[0]), n_startup_trials=_AT_RANDOM
                ),
            )
            study.add_trials(earlier)
            suggested = []
            for number in range(first, first + size):
                trial: Any = study.ask()
                fields: Config = {}
                if number:
                    fields = self._space(trial)
                elif self._default:
                    trial = optuna.trial.FixedTrial(dict(self._default))
                    self._space(trial)
                suggested.append(
                    Trial(
                        number,
                        trial.params,
                        fields,
                        distributions=trial.distributions,
                    )
                )
        return suggested


def _bar(name: str | None) -> Bar:
    """Returns a progress bar on stderr, which shows nothing without a name."""
    return Bar(
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=name is None,
    )


def _split(source: pa.Table, spec: JobSpec) -> tuple[pa.Table, pa.Table]:
    """Returns the rows of the trials and the test rows, all with a target."""
    found = find_rows_with_target(source, spec)
    table = source.filter(pa.array(found.known))
    split = split_rows(table, infer_schema(table, spec, found.choice), spec)
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


def _fields(spec: JobSpec) -> Config:
    """Returns the fields that a spec sets, as plain JSON values."""
    return spec.model_dump(mode="json", exclude_unset=True)


def _digest(*tables: pa.Table) -> str:
    """Returns the SHA-256 digest of the rows of tables."""
    found = hashlib.sha256()
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        found.update(sink.getvalue())
    return found.hexdigest()


def _figures(name: str, values: np.ndarray) -> dict[str, float | None]:
    mean = float(np.mean(values, dtype=np.float64)) if len(values) else np.nan
    error = standard_error(values)
    return {name: _plain(mean), f"{name}_standard_error": _plain(error)}


def _plain(number: float) -> float | None:
    """Returns a number as JSON has it, None in place of NaN."""
    return float(number) if np.isfinite(number) else None
